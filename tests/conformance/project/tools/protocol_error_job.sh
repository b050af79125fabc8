#!/usr/bin/env bash
# mcp: {"description": "A task that ends with an error of the protocol", "task": "required"}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"
mcp_fail -32603 "The job cannot be done."
