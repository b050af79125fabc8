"""mcpgreen: a folder of scripts, served as an MCP server.

Importing this package changes nothing in the process: no monkey-patching, no descriptors, no greenlets. `__main__`
does all of that when the server starts.
"""

__version__ = "0.1.0"
