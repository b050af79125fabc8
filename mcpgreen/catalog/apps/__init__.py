"""MCP Apps: what clients can show."""
