"""Where frames wait for the connection that sends them, and what is kept for clients that reconnect."""
