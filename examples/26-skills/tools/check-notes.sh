#!/usr/bin/env bash
# Check release notes before they are published.
# @arg notes!  The whole text
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_args_parse

if grep -q '.\{41,\}' <<< "${notes:?}"; then
  mcp_error invalid_notes "A line has more than 40 characters."
else
  echo "Ready to publish."
fi
