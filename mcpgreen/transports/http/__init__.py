"""Streamable HTTP: many clients, of both eras, on one endpoint."""
