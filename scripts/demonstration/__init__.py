"""What `make run` shows: a screen, a client of our own, and scenes with the real server."""
