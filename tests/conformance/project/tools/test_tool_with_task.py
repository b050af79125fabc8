#!/usr/bin/env python3
# mcp: {"description": "Ask for a name, then become a task", "task": "required", "taskBegins": "script"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

form = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
reply = mcp_tool.ask({"user_name": mcp_tool.form_request("What is your name?", form)})["user_name"]
mcp_tool.begin_task()
mcp_tool.emit_text(f"Hello, {reply.answer().content_or_raise()['name']}!")
