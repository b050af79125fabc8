"""Leads to the Python SDK, for tools that say `sys.path.insert(0, os.environ["MCP_SDK"])`.

The SDK itself is in `python/`, which scripts have on their PYTHONPATH and which holds nothing else, so that no module
of ours can stand in for one of theirs.
"""

from __future__ import annotations

import os
import sys

# First, or else the folder that led here would lead here again.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
del sys.modules[__name__]
__import__(__name__)
