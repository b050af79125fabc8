#!/bin/sh
# Run the tool as a client would, and see whether it answers as it should.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)

result=$("${MCPGREEN:-mcpgreen}" run-tool @NAME@ --project-root "$root" --args '{"name": "Ada"}')
case $result in
*'Hello, Ada!'*) echo "ok: @NAME@" ;;
*)
  echo "failed: @NAME@ answered $result" >&2
  exit 1
  ;;
esac
