#!/usr/bin/env bash
# mcp: {"description": "Log a message, which only a request that wants it gets to see"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_log_error test "A message"
mcp_emit_text "Logged a message."
