#!/usr/bin/env python3
"""Bake loaves of bread, one after the other, and report progress."""

import time

import mcp_tool

loaves = mcp_tool.arg_int("loaves")
for loaf in range(1, loaves + 1):
    mcp_tool.progress(100 * loaf / loaves, f"loaf {loaf} of {loaves}", total=100)
    time.sleep(0.1 if loaf < 3 else 1)
mcp_tool.emit_text("1 loaf is ready." if loaves == 1 else f"{loaves} loaves are ready.")
