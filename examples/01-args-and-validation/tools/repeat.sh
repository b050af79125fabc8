#!/usr/bin/env bash
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

word=$(mcp_args_require .word)
times=$(mcp_args_int .times --default 2)

text=""
for ((i = 0; i < times; i++)); do
  text+="$word"
done
mcp_emit_text "$text"
