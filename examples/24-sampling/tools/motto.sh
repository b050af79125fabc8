#!/usr/bin/env bash
# mcp: {"description": "A motto for a team, written by the client's model", "inputSchema": {"properties": {"team": {"type": "string", "description": "Which team"}}, "required": ["team"]}}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

question="A motto for the team $(mcp_args_require .team), please."
if answer=$(mcp_sample "$(mcp_json_escape "$question")" 30 '{"systemPrompt": "Five words at most."}'); then
  mcp_emit_text "$("$MCPBASH_JSON_TOOL_BIN" -r .content.text <<< "$answer")"
else
  mcp_emit_text "Keep going."
fi
