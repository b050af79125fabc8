#!/bin/sh
# mcp: {"description": "Take a minute, and write down the process ID", "inputSchema": {}}
echo "$$" > "slow.$$.pid"
exec sleep 60
