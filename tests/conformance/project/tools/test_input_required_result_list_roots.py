#!/usr/bin/env python3
# mcp: {"description": "Ask for the roots, and wait for them", "interaction": "replay"}
import os
import sys

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

said = mcp_tool.ask({"client_roots": mcp_tool.roots_request()})["client_roots"].result_or_raise()
mcp_tool.emit_text("Roots: " + ", ".join(root["uri"] for root in said["roots"]))
