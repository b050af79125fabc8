#!/bin/sh
# mcp: {"description": "Answer immediately", "inputSchema": {}}
echo "Here I am."
