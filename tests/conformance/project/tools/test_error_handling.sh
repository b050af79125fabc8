#!/usr/bin/env bash
# mcp: {"description": "Fail"}
echo "This tool intentionally returns an error for testing" >&2
exit 1
