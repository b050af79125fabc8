#!/usr/bin/env python3
# mcp: {"description": "Answer with a text, a picture and a resource"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

mcp_tool.result(
    "Multiple content types test:",
    mcp_tool.image_block("resources/static-binary.png"),
    mcp_tool.resource_block("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
)
