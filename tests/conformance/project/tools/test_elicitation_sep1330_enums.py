#!/usr/bin/env python3
# mcp: {"description": "Ask for choices of every kind"}
import json
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

options = ["option1", "option2", "option3"]
titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
form = {
    "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
}
answer = mcp_tool.elicit("What do you choose?", form)
mcp_tool.emit_text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")
