#!/usr/bin/env bash
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_emit_text "Region: $(mcp_args_get .region)"
