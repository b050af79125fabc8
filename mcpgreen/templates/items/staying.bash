#!/usr/bin/env bash
# mcp: {"description": "Greet somebody by name, and count the greetings.", "stays": "@STAYS@"}
# @arg name=World  Who to greet
set -euo pipefail
# shellcheck source=/dev/null
source "${MCP_SDK:?run this with: mcpgreen run-tool @NAME@}/tool-sdk.sh"

greetings=0 # the process is resident: this is kept between calls
while mcp_next_call; do
  mcp_args_parse
  greetings=$((greetings + 1))
  mcp_answer "Hello, ${name:?}! Greeting $greetings."
done
