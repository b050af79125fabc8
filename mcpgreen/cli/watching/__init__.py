"""See what happens in running servers: live, or from a file of events."""
