#!/bin/sh
# The https provider as a program for scripts: https.sh URI. Content on stdout, reason of a failure on stderr.
exec sh "$(dirname -- "$0")/launch.sh" https "$@"
