#!/usr/bin/env bash
# mcp: {"description": "Say hello, at once"}
# @arg name!  Who to greet
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_emit_text "Hello, $(mcp_args_get .name)!"
