"""HTTP/1.1 as bytes: listeners, connections, heads and bodies. Knows nothing about MCP."""
