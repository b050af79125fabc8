"""Connections, dispatch and the server as a whole. Knows nothing about file descriptors."""
