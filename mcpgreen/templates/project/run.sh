#!/bin/sh
# Test the whole project: validate it, run mcpgreen test, the scripts in this folder and the smoke tests next to tools.
# MCPGREEN names the command if it is neither on the PATH nor where it was when this file was written.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
status=0

export MCPGREEN="${MCPGREEN:-$(command -v mcpgreen || echo @PROGRAM@)}"
if ! command -v "$MCPGREEN" >/dev/null; then
  echo "There is no $MCPGREEN; name the command: MCPGREEN=/path/to/mcpgreen $0" >&2
  exit 127
fi
"$MCPGREEN" validate --project-root "$root" || status=1
for tests in "$root"/tests/*.test.yaml "$root"/tools/*/*.test.yaml; do
  if [ -e "$tests" ]; then
    "$MCPGREEN" test --project-root "$root" || status=1
    break
  fi
done
for test in "$root"/tools/*/smoke.sh "$root"/test/*.sh; do
  if [ "$test" = "$root/test/run.sh" ] || [ ! -x "$test" ]; then
    continue
  fi
  "$test" || status=1
done
exit "$status"
