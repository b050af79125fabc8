#!/bin/sh
# mcp: {"description": "Say goodbye to everybody", "inputSchema": {}}
echo "Goodbye."
