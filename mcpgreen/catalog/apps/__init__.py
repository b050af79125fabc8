"""MCP Apps: pages that clients show."""
