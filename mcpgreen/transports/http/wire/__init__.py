"""HTTP/1.1 as bytes: listening sockets, connections, heads and bodies. Knows nothing about MCP."""
