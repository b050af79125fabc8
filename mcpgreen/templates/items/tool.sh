#!/bin/sh
# Greet somebody by name.
# @arg name=World  Who to greet
set -eu

# The comments above describe the tool to the model. Arguments are a JSON object: in a variable, or in a file when they
# are long.
if [ -n "${MCP_TOOL_ARGS_FILE:-}" ]; then
  arguments=$(cat "$MCP_TOOL_ARGS_FILE")
else
  arguments=${MCP_TOOL_ARGS_JSON:-"{}"}
fi

# What is printed is the result.
printf '%s' "$arguments" | jq -r '"Hello, \(.name // "World")!"'
