#!/usr/bin/env python3
# mcp: {"description": "Ask the model, and wait for it", "interaction": "replay"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

question = mcp_tool.sampling_request("What is the capital of France?", max_tokens=100)
said = mcp_tool.ask({"capital_question": question})["capital_question"].result_or_raise()
mcp_tool.emit_text(said["content"]["text"])
