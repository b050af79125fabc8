"""Ask the user or the client's model while a request is being served."""
