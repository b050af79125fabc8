#!/usr/bin/env bash
# mcp: {"description": "Pretend to back up two folders", "inputSchema": {}}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

mcp_log_debug backup "looking for folders"
mcp_log_info backup "found 2 folders"
mcp_log_warn backup "photos is 3 days old"
echo "This line goes to stderr, for the person who runs the server." >&2
mcp_emit_text "Backed up 2 folders."
