#!/usr/bin/env bash
# mcp: {"description": "Greet somebody", "inputSchema": {"required": ["name"]}}
source "$MCP_SDK/tool-sdk.sh"
name=$(mcp_args_require .name)
echo "Hello, $name."
