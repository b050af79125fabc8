#!/bin/sh
# mcp: {"description": "Roll a fair die", "inputSchema": {}}
echo 4
