#!/bin/sh
# mcp: {"description": "Answer at once", "inputSchema": {}}
echo "Here I am."
