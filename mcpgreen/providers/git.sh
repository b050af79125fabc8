#!/bin/sh
# The git provider as a program for scripts: git.sh URI. Content on stdout, reason of a failure on stderr.
exec sh "$(dirname -- "$0")/launch.sh" git "$@"
