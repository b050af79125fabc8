"""How requests over HTTP are served: after a handshake, stateless, or by the older pair of addresses."""
