#!/usr/bin/env bash
# Add tax to a price.
# @arg price number  The price without tax
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

price=$(mcp_args_get .price)
if [[ $price == -* ]]; then
  echo "a price cannot be negative" >&2
  exit 2
fi
jq -n --argjson price "$price" '{total: ($price * 1.2)}'
