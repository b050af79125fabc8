#!/usr/bin/env bash
# mcp: {"description": "As many stars in the catalogue as fit", "inputSchema": {}}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

stars=$(printf '"star %d"\n' {1..500} | "$MCPBASH_JSON_TOOL_BIN" -sc .)
mcp_emit_json "$(mcp_json_truncate "$stars" 100)"
