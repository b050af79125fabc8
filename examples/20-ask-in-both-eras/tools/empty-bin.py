#!/usr/bin/env python3
# mcp: {"description": "Empty the bin, after asking", "inputSchema": {}, "annotations": {"destructiveHint": true}}
import sys

import mcp_tool

try:
    is_meant = mcp_tool.confirm("Delete 3 files for good?")
except (mcp_tool.Declined, mcp_tool.Dismissed):
    is_meant = False
except mcp_tool.Unsupported:
    mcp_tool.error("not_asked", "Nothing was deleted, because no one could be asked.")
    sys.exit()
mcp_tool.emit_text("The bin is empty." if is_meant else "Nothing was deleted.")
