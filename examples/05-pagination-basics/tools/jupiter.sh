#!/bin/sh
# mcp: {"description": "How long a year on Jupiter is", "inputSchema": {}}
echo "4333 days"
