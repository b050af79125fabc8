#!/usr/bin/env bash
# mcp: {"description": "A task that fails after a second", "task": "required"}
sleep 1
echo "The job has failed." >&2
exit 1
