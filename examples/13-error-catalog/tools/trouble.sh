#!/usr/bin/env bash
# mcp: {"description": "Fail in one of four ways", "inputSchema": {"properties": {"way": {"type": "string", "enum": ["status", "result", "protocol", "signal"], "description": "How to fail"}}, "required": ["way"]}}
# shellcheck source=/dev/null
source "${MCP_SDK:?}/tool-sdk.sh"

case $(mcp_args_require .way) in
  status)
    echo "3 of 5 files were copied"
    echo "the disk is full" >&2
    exit 3
    ;;
  result) mcp_error not_found "There is no file notes.txt." --hint "Call list-files first." ;;
  protocol) mcp_fail -32001 "The archive is closed" '{"opens":"08:00"}' ;;
  signal) kill -KILL $$ ;;
esac
