#!/usr/bin/env bash
# mcp: {"description": "Change the list of prompts"}
printf '{"description": "Changed by process %s", "messages": [{"content": "Changed."}]}\n' "$$" >"prompts/.changing.$$"
mv "prompts/.changing.$$" prompts/changing.meta.json
echo "Changed the list of prompts."
