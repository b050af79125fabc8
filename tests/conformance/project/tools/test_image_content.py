#!/usr/bin/env python3
# mcp: {"description": "Show a picture"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

mcp_tool.result(mcp_tool.image_block("resources/static-binary.png"))
