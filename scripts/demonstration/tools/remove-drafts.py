#!/usr/bin/env python3
# mcp: {"description": "Remove all drafts, after asking", "needs": ["elicitation.form"]}
import os
import sys
from pathlib import Path

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

drafts = list(Path("drafts").glob("*.txt"))
try:
    is_confirmed = mcp_tool.confirm(f"Remove {len(drafts)} drafts for good?")
except mcp_tool.NotAnswered:
    is_confirmed = False
if is_confirmed:
    for draft in drafts:
        draft.unlink()
mcp_tool.emit_text(f"Removed {len(drafts)} drafts." if is_confirmed else "Nothing was removed.")
