"""Streamable HTTP: many clients, with a session or stateless, on one endpoint."""
