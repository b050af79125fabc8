#!/usr/bin/env python3
# mcp: {"description": "Ask twice, and leave each time"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool


def ask(key: str, message: str, field: str, state: str) -> None:
    form = {"properties": {field: {"type": "string"}}, "required": [field]}
    mcp_tool.input_required({key: mcp_tool.form_request(message, form)}, state)


answers, name = mcp_tool.input_responses(), mcp_tool.request_state()
if "step2" in answers:
    mcp_tool.emit_text(f"{name} likes {answers['step2']['content']['color']}.")
elif "step1" in answers:
    ask("step2", "Step 2: What is your favorite color?", "color", answers["step1"]["content"]["name"])
else:
    ask("step1", "Step 1: What is your name?", "name", "nobody yet")
