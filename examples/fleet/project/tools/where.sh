#!/usr/bin/env bash
# mcp: {"description": "Say where the server runs", "inputSchema": {"type": "object"}}
hostname
