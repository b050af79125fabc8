#!/bin/sh
# Run the tool @NAME@ as a client would, and check that it returns no error.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

result=$("${MCPGREEN:-mcpgreen}" run-tool @NAME@ --project-root "$root" --args @ARGUMENTS@)
case $result in
*'"isError":false'*) echo "ok: @NAME@" ;;
*)
  echo "failed: @NAME@ answered $result" >&2
  exit 1
  ;;
esac
