#!/bin/sh
# The file provider as a program for scripts: file.sh URI. Content on stdout, reason of a failure on stderr.
exec sh "$(dirname -- "$0")/launch.sh" file "$@"
