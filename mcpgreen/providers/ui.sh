#!/bin/sh
# The ui provider as a program for scripts: ui.sh URI. Content on stdout, reason of a failure on stderr.
exec sh "$(dirname -- "$0")/launch.sh" ui "$@"
