#!/bin/sh
# mcp: {"description": "Take a minute, and write down who does", "inputSchema": {}}
echo "$$" > "slow.$$.pid"
exec sleep 60
