#!/bin/sh
# The echo provider as a program for scripts: echo.sh URI. Content on stdout, reason of a failure on stderr.
exec sh "$(dirname -- "$0")/launch.sh" echo "$@"
