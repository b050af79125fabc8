#!/usr/bin/env python3
"""Lesson 2: arguments in, structured content out, with the Python SDK."""

import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

numbers = mcp_tool.args()["numbers"]
mcp_tool.emit_json({"sum": sum(numbers), "count": len(numbers)})
