#!/usr/bin/env python3
# mcp: {"description": "Ask for a context, and wait for it"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

form = {"properties": {"context": {"type": "string"}}, "required": ["context"]}
reply = mcp_tool.ask({"user_context": mcp_tool.form_request("What context should the prompt use?", form)})
mcp_tool.emit_text(f"Use this context: {reply['user_context'].answer().content_or_raise()['context']}")
