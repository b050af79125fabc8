#!/bin/sh
# mcp: {"description": "Say hello to everybody", "inputSchema": {}}
echo "Hello."
