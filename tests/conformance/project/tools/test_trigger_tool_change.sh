#!/usr/bin/env bash
# mcp: {"description": "Change the list of tools"}
# Written aside and renamed, so that no server ever reads half of it.
printf '#!/bin/sh\n# mcp: {"description": "Changed by process %s"}\necho changed\n' "$$" >"tools/.changing.$$"
chmod 755 "tools/.changing.$$"
mv "tools/.changing.$$" tools/changing.sh
echo "Changed the list of tools."
