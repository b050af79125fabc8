#!/usr/bin/env python3
# mcp: {"description": "Ask for a confirmation, and leave; its state is sealed by the server"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

if "confirm" not in mcp_tool.input_responses():
    form = {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    mcp_tool.input_required({"confirm": mcp_tool.form_request("Please confirm", form)}, "untouched")
else:
    mcp_tool.emit_text(f"The state is {mcp_tool.request_state()}.")
