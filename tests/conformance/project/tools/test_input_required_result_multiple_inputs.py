#!/usr/bin/env python3
# mcp: {"description": "Ask the person, the model and the client at once, and leave"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

answers = mcp_tool.input_responses()
if not answers:
    form = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    mcp_tool.input_required(
        {
            "user_name": mcp_tool.form_request("What is your name?", form),
            "greeting": mcp_tool.sampling_request("Generate a greeting", max_tokens=50),
            "client_roots": mcp_tool.roots_request(),
        },
        "asked",
    )
else:
    name, greeting = answers["user_name"]["content"]["name"], answers["greeting"]["content"]["text"]
    mcp_tool.emit_text(f"{greeting} {name} has {len(answers['client_roots']['roots'])} roots.")
