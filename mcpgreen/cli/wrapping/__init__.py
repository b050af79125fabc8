"""`mcpgreen wrap`: a tool out of a command's help, or out of the targets of a file."""
