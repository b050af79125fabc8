#!/usr/bin/env python3
import json
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

form = {
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
answer = mcp_tool.elicit(mcp_tool.require("message"), form)
mcp_tool.emit_text(f"User response: action={answer.action}, content={json.dumps(answer.content)}")
