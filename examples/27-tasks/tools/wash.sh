#!/usr/bin/env bash
# mcp: {"description": "Wash the laundry", "inputSchema": {}, "task": "always"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_progress 50 "rinsing"
sleep 2
echo "The laundry is clean."
