#!/bin/sh
# mcp: {"description": "How long a year on Mars is", "inputSchema": {}}
echo "687 days"
