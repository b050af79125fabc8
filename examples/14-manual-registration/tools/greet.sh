#!/bin/sh
echo "The front desk says: $MCP_TOOL_NAME."
