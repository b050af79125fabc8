#!/usr/bin/env bash
# mcp: {"description": "Report progress, ask for a confirmation, and leave"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
if [[ -n ${MCP_INPUT_RESPONSES_JSON:-} ]]; then
  mcp_emit_text "The answer is $MCP_INPUT_RESPONSES_JSON"
else
  mcp_progress 50 "about to ask"
  form='{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}'
  params='{"mode":"form","message":"Go on?","requestedSchema":'$form'}'
  mcp_emit_json '{"resultType":"input_required","inputRequests":{"confirm":{"method":"elicitation/create","params":'"$params"'}}}'
fi
