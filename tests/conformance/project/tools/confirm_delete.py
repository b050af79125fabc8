#!/usr/bin/env python3
# mcp: {"description": "Ask before a file is deleted, within the task", "task": "always", "taskBegins": "script"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

mcp_tool.begin_task()
name = mcp_tool.args().get("filename", "the file")
form = {"properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
answer = mcp_tool.ask({"confirm": mcp_tool.form_request(f"Delete {name}?", form)})["confirm"].answer()
is_confirmed = answer.is_accepted and (answer.content or {}).get("confirm")
mcp_tool.emit_text(f"Deleted {name}" if is_confirmed else f"Kept {name}")
