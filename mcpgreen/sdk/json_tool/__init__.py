"""jq for scripts on hosts that have none: the command, with libjq from the PyPI package `jq` behind it.

Not a part of the server: it imports nothing from mcpgreen, and `json-tool` runs it with the Python of the package.

Rule: the import stays light, because each use of it in a script pays for that.
"""
