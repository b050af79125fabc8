#!/usr/bin/env bash
# mcp: {"description": "Work for a while, as a task where that is possible", "task": "always"}
# @arg seconds=1 number  How long
# @arg label=          What it is for
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
sleep "$(mcp_args_get .seconds)"
printf 'Computed %s\n' "$(mcp_args_get .label)"
