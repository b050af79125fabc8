#!/bin/sh
# mcp: {"description": "Say hello through a proxy", "inputSchema": {}}
echo "Hello over HTTP."
