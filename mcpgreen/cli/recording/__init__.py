"""Record sessions, and play them again: the client's side against a project, or the server's side for a client."""
