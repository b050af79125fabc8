#!/usr/bin/env python3
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

mcp_tool.emit_text(f"LLM response: {mcp_tool.sample(mcp_tool.require('prompt'), max_tokens=100).text}")
