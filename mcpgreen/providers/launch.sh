#!/bin/sh
# Run a built-in provider: launch.sh NAME URI. Needs neither an installed package nor a working directory.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
# The first place where Python looks for modules is replaced: it would be the working directory, with who knows what.
# An empty or relative part of PYTHONPATH is the working directory, too.
case :${PYTHONPATH:-/}: in
*::* | *:[!/]*) PYTHONPATH=$(printf '%s' "$PYTHONPATH" | tr : '\n' | sed -n '/^\//p' | paste -sd : -) ;;
esac
exec "${MCPGREEN_PYTHON:-python3}" -c '
import sys
sys.path[0] = sys.argv.pop(1)
from mcpgreen.providers.__main__ import main
sys.exit(main(sys.argv[1:]))' "${here%/*/*}/" "$@"
