#!/bin/sh
# mcp: {"description": "How long a year on Earth is", "inputSchema": {}}
echo "365 days"
