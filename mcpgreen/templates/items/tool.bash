#!/usr/bin/env bash
# Greet somebody by name.
# @arg name=World  Who to greet
set -euo pipefail
# shellcheck source=/dev/null
source "${MCP_SDK:?run this with: mcpgreen run-tool @NAME@}/tool-sdk.sh"
mcp_args_parse

# The comments at the top describe the tool to the model. What is printed is the result.
echo "Hello, ${name:?}!"
