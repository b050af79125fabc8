#!/usr/bin/env bash
# Gives the content of addresses that begin with @SCHEME@: and gets one as its argument. What is printed is the content.
set -euo pipefail
address=$1

name=${address#*://}
if [[ -z $name ]]; then
  echo "an address needs a name: @SCHEME@://NAME" >&2
  exit 4 # the address makes no sense; 3 would say that there is nothing under it
fi
printf 'This is %s.\n' "$name"
