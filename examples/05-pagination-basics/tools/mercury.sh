#!/bin/sh
# mcp: {"description": "How long a year on Mercury is", "inputSchema": {}}
echo "88 days"
