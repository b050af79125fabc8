#!/bin/sh
# mcp: {"description": "How long a year on Venus is", "inputSchema": {}}
echo "225 days"
