#!/bin/sh
# Serve the project with the copy of mcpgreen in .mcpgreen/, or run the command that is given: run-server.sh validate
# Written by `mcpgreen vendor`, and again by `mcpgreen vendor --upgrade`.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
export MCPGREEN_LAUNCHER="$here/run-server.sh" # for entries in the files of clients

# Any Python can begin: start.py finds another one if this one cannot serve. Programs that are started from a desktop
# have a short PATH, hence the usual places.
for python in "${MCPGREEN_PYTHON:-python3}" python3.13 python3.12 python3.11 python3.10 \
  /usr/local/bin/python3 /opt/homebrew/bin/python3 /usr/bin/python3; do
  if command -v "$python" >/dev/null 2>&1; then
    exec "$python" -I "$here/.mcpgreen/start.py" "$@"
  fi
done
echo "run-server.sh: no Python was found. Install Python 3.10 or newer, or name one with MCPGREEN_PYTHON." >&2
exit 1
