#!/bin/sh
# Prints suggestions as a JSON array of strings. The request is in the environment, see MCP_COMPLETION_ARGS_JSON.
set -eu

printf '%s' "${MCP_COMPLETION_ARGS_JSON:-"{}"}" | jq -c '
  (.prefix // "") as $typed
  | ["alpha", "beta", "gamma"]
  | map(select(startswith($typed)))'
