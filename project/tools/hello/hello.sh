#!/bin/sh
# mcp: {"name": "hello", "description": "Say hello from the server", "inputSchema": {}}
# Lesson 1: an executable that prints text is a tool.
echo "Hello from $(basename "$MCPGREEN_PROJECT_ROOT")."
