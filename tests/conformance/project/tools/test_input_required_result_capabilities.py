#!/usr/bin/env python3
# mcp: {"description": "Ask whatever this client can be asked", "interaction": "replay"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

questions = {}
if mcp_tool.can_elicit():
    form = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    questions["user_name"] = mcp_tool.form_request("What is your name?", form)
if mcp_tool.can_sample():
    questions["greeting"] = mcp_tool.sampling_request("Generate a greeting", max_tokens=50)
replies = mcp_tool.ask(questions) if questions else {}
mcp_tool.emit_text("Answered: " + ", ".join(key for key, reply in replies.items() if reply.status == "answered"))
