#!/bin/sh
# Prints what could follow, as a JSON array of texts. The question is in the environment, see MCP_COMPLETION_ARGS_JSON.
set -eu

printf '%s' "${MCP_COMPLETION_ARGS_JSON:-"{}"}" | jq -c '
  (.prefix // "") as $typed
  | ["alpha", "beta", "gamma"]
  | map(select(startswith($typed)))'
