#!/bin/sh
# mcp: {"description": "Say hello from a shell script", "inputSchema": {}}
echo "Hello from a shell script."
