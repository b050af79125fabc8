#!/usr/bin/env bash
# mcp: {"description": "All stars in the catalogue, however many there are", "inputSchema": {}}
printf '"star %d"\n' {1..500}
