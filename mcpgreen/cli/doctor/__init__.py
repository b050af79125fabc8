"""Check whether this machine, this project and a client's configuration work."""
