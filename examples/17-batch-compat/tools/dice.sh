#!/bin/sh
# mcp: {"description": "Roll a fair dice", "inputSchema": {}}
echo 4
