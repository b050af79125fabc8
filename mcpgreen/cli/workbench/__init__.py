"""`mcpgreen dev`: a page on this machine to see what a project offers, to try it, and to watch servers."""
