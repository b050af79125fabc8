"""What the server knows about its clients: sessions, streams, sinks and waiting requests."""
