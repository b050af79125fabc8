"""Whether this machine, this project and a client's configuration can serve."""
