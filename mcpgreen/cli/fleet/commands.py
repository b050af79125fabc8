"""`mcpgreen worker`: what has to be done before a worker can be loaded.

Rule: Celery's gevent pool needs a patched library, and nothing may be loaded before that.
"""

from __future__ import annotations

import os

from mcpgreen.cli.commands import Options
from mcpgreen.errors import UsageError
from mcpgreen.fleet.address import VARIABLE, require_public


def use_fleet(options: Options) -> None:
    """Take the fleet that a command line names, for this process and those that it starts."""
    if options["--fleet"]:
        os.environ[VARIABLE] = require_public(options["--fleet"])


def run_worker(options: Options) -> int:
    use_fleet(options)
    slots = options["--slots"] or "8"
    if not slots.isdecimal() or not 1 <= int(slots) <= 256:
        raise UsageError("--slots must be a number from 1 to 256.")
    from gevent import monkey

    # Processes and signals stay as our runner needs them.
    monkey.patch_all(os=False, subprocess=False, signal=False, sys=False)
    from mcpgreen.cli.fleet import worker

    return worker.work(options, slots=int(slots))
