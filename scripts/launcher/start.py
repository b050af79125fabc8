"""How a single-file launcher becomes the server: every start but the first goes from scripts/mcpgreen to here.

Lies in the environment and runs with its Python, isolated. Rule: it comes before the first answer, so it imports next
to nothing.
"""

from __future__ import annotations

import fcntl
import os
import sys

try:
    from mcpgreen.__main__ import main
except ImportError:
    # As after an upgrade of the Python that the environment was made with. The launcher makes it anew, once.
    if os.environ.get("MCPGREEN_ANEW"):
        raise
    os.environ["MCPGREEN_ANEW"] = "yes"
    os.execv("/bin/sh", ["sh", os.environ["MCPGREEN_LAUNCHER"], *sys.argv[1:]])

try:  # noqa: SIM105 (contextlib takes milliseconds)
    # As long as we run: a newer launcher does not remove an environment that is in use.
    fcntl.flock(os.open(sys.prefix, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError:
    pass  # a file system without locks

# The second names what the environment was made with. Scripts shall have ours, with its packages.
for name in ("MCPGREEN_ANEW", "MCPGREEN_PYTHON"):
    os.environ.pop(name, None)
sys.exit(main())
