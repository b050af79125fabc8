#!/bin/sh
# Test the whole project: validate it, and run the scripts in this folder and the smoke tests next to tools.
# MCPGREEN names the command if it is not on the PATH.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
status=0

if ! command -v "${MCPGREEN:-mcpgreen}" >/dev/null; then
  echo "${MCPGREEN:-mcpgreen} is not on the PATH; name it: MCPGREEN=/path/to/mcpgreen $0" >&2
  exit 127
fi
"${MCPGREEN:-mcpgreen}" validate --project-root "$root" || status=1
for test in "$root"/tools/*/smoke.sh "$root"/test/*.sh; do
  if [ "$test" = "$root/test/run.sh" ] || [ ! -x "$test" ]; then
    continue
  fi
  "$test" || status=1
done
exit "$status"
