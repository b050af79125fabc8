"""What a client can ask for: one module per page of the MCP specification."""
