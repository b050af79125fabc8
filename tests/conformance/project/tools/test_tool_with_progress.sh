#!/usr/bin/env bash
# mcp: {"description": "Report progress three times"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_progress 0 "" 100
sleep 0.05
mcp_progress 50 "" 100
sleep 0.05
mcp_progress 100 "" 100
mcp_emit_text "Reported progress."
