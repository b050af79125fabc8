#!/bin/sh
# Serve the project that this file is in.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
set -- @PROGRAM@ serve --project-root "$root" "$@"
exec "$@"
