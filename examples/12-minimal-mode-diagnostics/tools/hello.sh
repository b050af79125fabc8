#!/bin/sh
# mcp: {"description": "Say hello, if anybody lets me", "inputSchema": {}}
echo "Nobody hears this."
