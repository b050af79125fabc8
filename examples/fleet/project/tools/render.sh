#!/usr/bin/env bash
# mcp: {"description": "Render a frame on a machine with a GPU", "inputSchema": {"type": "object", "properties": {"frame": {"type": "integer"}}}, "run_on": ["gpu"], "idempotent": true}
source "${MCP_SDK:?}/tool-sdk.sh"
frame=$(mcp_args_get '.frame // 1')
mcp_progress 50 "frame $frame" 100
echo "Frame $frame was rendered on $(hostname)."
