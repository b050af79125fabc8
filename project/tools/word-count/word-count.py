#!/usr/bin/env python3
"""Lesson 4: errors that a model can act on."""

import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

text = mcp_tool.require("text")
if not text.strip():
    mcp_tool.error("empty_text", "There is nothing to count.", hint="Pass a text with at least one word.")
else:
    mcp_tool.result_success({"words": len(text.split()), "characters": len(text)})
