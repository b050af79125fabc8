#!/usr/bin/env python3
# mcp: {"description": "Ask two questions at once, within the task", "task": "always"}
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool


def ask(key: str, text: str) -> str:
    form = {"properties": {key: {"type": "string"}}}
    return str((mcp_tool.ask({key: mcp_tool.form_request(text, form)})[key].answer().content or {}).get(key, ""))


with ThreadPoolExecutor() as threads:
    first, second = threads.submit(ask, "name", "What is your name?"), threads.submit(ask, "place", "Where are you?")
    mcp_tool.emit_text(f"{first.result()} is in {second.result()}")
