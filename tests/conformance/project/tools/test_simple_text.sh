#!/usr/bin/env bash
# mcp: {"description": "Say one sentence"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_emit_text "This is a simple text response for testing."
