#!/bin/sh
# Prints the content of the resource whose URI is its argument; all of them begin with @SCHEME@:.
set -eu
uri=$1

name=${uri#*://}
if [ -z "$name" ]; then
  echo "the URI needs a name: @SCHEME@://NAME" >&2
  exit 4 # the URI is invalid; 3 would mean that there is no such resource
fi
printf 'This is %s.\n' "$name"
