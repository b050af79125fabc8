#!/usr/bin/env python3
# mcp: {"description": "Ask for a confirmation, leave, and remember something meanwhile"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

STATE = "the first round is over"

if "confirm" not in mcp_tool.input_responses():
    form = {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    mcp_tool.input_required({"confirm": mcp_tool.form_request("Please confirm", form)}, STATE)
elif mcp_tool.request_state() == STATE:
    mcp_tool.emit_text("state-ok")
else:
    mcp_tool.error("wrong_state", "The state is not the one that the first round left.")
