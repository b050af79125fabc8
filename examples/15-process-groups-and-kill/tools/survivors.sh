#!/usr/bin/env bash
# mcp: {"description": "How many of the processes that spawn started are still running", "inputSchema": {}}
[[ -r started.txt ]] || { echo "Call spawn first." >&2 && exit 1; }
read -ra started < started.txt
for _ in {1..30}; do
  alive=0
  for process in "${started[@]}"; do
    if kill -0 "$process" 2> /dev/null; then alive=$((alive + 1)); fi
  done
  if ((alive == 0)); then break; fi
  sleep 0.1
done
echo "$alive of ${#started[@]}"
