"""A jq in small: the filters that shell tools need, where neither jq nor gojq is installed.

Not all of jq: no modules, no input in streams, no time zones. What it does not know it names, with exit status 3.
Options and exit statuses are those of jq. Not a part of the server: it imports nothing from mcpgreen, and `json-tool`
runs it with any Python since 3.10.

Rule: the import stays light, because each use of it in a script pays for that.
"""
