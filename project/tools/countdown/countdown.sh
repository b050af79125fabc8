#!/usr/bin/env bash
# Lesson 3: progress, log messages and cancellation, with the shell SDK.
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

from="$(mcp_args_int '.from' --default 3 --min 1 --max 60)"
mcp_log_info countdown "counting down from ${from}"
for ((left = from; left > 0; left--)); do
  mcp_progress $(((from - left) * 100 / from)) "${left}"
  sleep 0.3
done
mcp_progress 100 "lift-off"
mcp_emit_text "Lift-off."
