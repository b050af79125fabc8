#!/usr/bin/env bash
# List what has changed since a version.
# @arg since!  The version that people have now, such as 1.3
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_args_parse

echo "Since ${since:?}:"
echo "- repair the clock, which stops at midnight"
echo "- let alarms repeat"
echo "- correct a typo in the manual"
