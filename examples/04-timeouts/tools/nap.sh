#!/bin/sh
# mcp: {"description": "Sleep for some seconds", "timeoutSecs": 1, "timeoutHint": "Ask for a shorter nap.", "inputSchema": {"properties": {"seconds": {"type": "integer", "minimum": 0, "description": "How long to sleep"}}, "required": ["seconds"]}}
sleep "$(printf '%s' "$MCP_TOOL_ARGS_JSON" | tr -cd 0-9)"
echo "Good morning."
