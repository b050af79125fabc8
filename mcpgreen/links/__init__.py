"""What the server knows of its clients: sessions, streams, sinks, and the requests that wait."""
