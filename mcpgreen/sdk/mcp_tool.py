"""Import the Python SDK, for tools that contain `sys.path.insert(0, os.environ["MCP_SDK"])`.

The SDK is in `python/`, which the server puts on the PYTHONPATH of scripts. That folder contains nothing else, so that
no module of ours can hide a module of theirs.
"""

from __future__ import annotations

import os
import sys

# At the front, or the import below would find this file again.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
del sys.modules[__name__]
__import__(__name__)
