#!/usr/bin/env bash
# What is printed here is the result. The arguments were checked against tool.meta.json before.
set -euo pipefail
# shellcheck source=/dev/null
source "${MCP_SDK:?run this with: mcpgreen run-tool @NAME@}/tool-sdk.sh"

name=$(mcp_args_get '.name // "World"')
mcp_emit_json "$(mcp_json_obj message "Hello, $name!")"
