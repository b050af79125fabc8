"""`mcpgreen wrap`: create tools from a command's help, or from the targets in a file."""
