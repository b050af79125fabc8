#!/usr/bin/env python3
# mcp: {"description": "Ask with a default in every field"}
import json
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

form = {
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
}
answer = mcp_tool.elicit("Is this right?", form)
mcp_tool.emit_text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")
