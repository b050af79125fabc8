"""mcpgreen: a folder of scripts, served as an MCP server.

Importing this package changes nothing in the process: no monkey-patching, no descriptors, no greenlets. `__main__`
does all of that when the server starts.
"""

import os

__version__ = "0.1.0"

PACKAGE_DIR = os.path.dirname(os.path.abspath(__file__))
