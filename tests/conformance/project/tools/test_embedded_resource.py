#!/usr/bin/env python3
# mcp: {"description": "Embed a resource"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

text = "This is an embedded resource content."
mcp_tool.result(mcp_tool.resource_block("test://embedded-resource", text, "text/plain"))
