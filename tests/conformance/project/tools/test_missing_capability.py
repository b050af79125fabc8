#!/usr/bin/env python3
# mcp: {"description": "Needs a client whose model can be asked", "needs": ["sampling"]}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

mcp_tool.emit_text(mcp_tool.sample("Say hello.", max_tokens=10).text)
