#!/usr/bin/env bash
# mcp: {"description": "Count the words of all pages", "inputSchema": {"properties": {"pause": {"type": "number"}}}}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

pause=$(mcp_args_get .pause --default 0.02) # between two pages; without it the bar would be full at once
mcp_log_info count-words "process $$"
pages=(pages/*.md)
words=0
for ((done = 0; done < ${#pages[@]}; done++)); do
  mcp_progress $((done * 100 / ${#pages[@]})) "${pages[done]##*/}"
  words=$((words + $(wc -w <"${pages[done]}")))
  sleep "$pause"
done
mcp_progress 100 "done"
mcp_emit_text "$words words on ${#pages[@]} pages"
