#!/bin/sh
# What is printed here is the result. The arguments were checked against tool.meta.json before.
set -eu

# Arguments are a JSON object: in a variable, or in a file when they are long.
if [ -n "${MCP_TOOL_ARGS_FILE:-}" ]; then
  arguments=$(cat "$MCP_TOOL_ARGS_FILE")
else
  arguments=${MCP_TOOL_ARGS_JSON:-"{}"}
fi

printf '%s' "$arguments" | jq -c '{message: "Hello, \(.name // "World")!"}'
