#!/usr/bin/env bash
# mcp: {"description": "Start processes in the background and hang", "timeoutSecs": 1, "inputSchema": {}}
sleep 60 &
first=$!
(sleep 60 & echo "$!" > second.pid; wait) &
setsid sleep 60 &
echo "$$ $first $! $(sleep 0.2; cat second.pid)" > started.txt
wait
