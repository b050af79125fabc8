"""Constants of mcpgreen that a test makes small or short, in a server process of its own.

Where a test names settings, a name in capitals is one of these constants: `start(page_size=2, KILL_GRACE_SECS=0.1)`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "TESTED_CONSTANTS"
AT_START = Path(__file__).parent / "at_start"  # has the module that Python imports at its start
HOMES = {
    "ANSWER_SECS": "mcpgreen.links.roots",
    "ASK_SECS": "mcpgreen.features.asking.asking",
    "BODY_SECS": "mcpgreen.transports.http.wire.connection",
    "CHECK_SECS": "mcpgreen.running.schema_checks",
    "DEBOUNCE_SECS": "mcpgreen.links.roots",
    "DEFAULT_POLL_SECS": "mcpgreen.engine.changes",
    "DRAIN_SECS": "mcpgreen.running.processes.run",
    "EOF_GRACE_SECS": "mcpgreen.transports.stdio",
    "FREE_POLLS_A_SEC": "mcpgreen.features.tasks.tasks",
    "HEAD_SECS": "mcpgreen.transports.http.wire.connection",
    "IDLE_SECS": "mcpgreen.transports.http.wire.connection",
    "KEEP_ALIVE_SECS": "mcpgreen.transports.http.exchange",
    "KEPT_FILES": "mcpgreen.logs.outputs",
    "KILL_GRACE_SECS": "mcpgreen.running.processes.run",
    "LEAST_RESPONSE_BYTES": "mcpgreen.settings.settings",
    "LOOK_SECS": "mcpgreen.running.resident.pools",
    "MAX_BACKLOG_BYTES": "mcpgreen.links.sink",
    "MAX_FAILURES_PER_MIN": "mcpgreen.protocol.token",
    "MAX_FILE_BYTES": "mcpgreen.logs.outputs",
    "MAX_FRAME_BYTES": "mcpgreen.engine.recorder",
    "MAX_LISTENS": "mcpgreen.features.watching.subscriptions",
    "MAX_PARKED": "mcpgreen.features.asking.asking",
    "MAX_QUEUED_BYTES": "mcpgreen.links.session",
    "MAX_QUEUED_REQUESTS": "mcpgreen.links.session",
    "MAX_SESSIONS_PER_PRINCIPAL": "mcpgreen.transports.http.sessions",
    "MAX_SUBSCRIPTIONS": "mcpgreen.features.watching.subscriptions",
    "MAX_UNSENT_BYTES": "mcpgreen.events.offer",
    "MEMORY_MB": "mcpgreen.providers.exits",
    "MOST_RESIDENTS": "mcpgreen.running.system",
    "PARKED_SECS": "mcpgreen.features.asking.asking",
    "POLICY_SECS": "mcpgreen.running.policy",
    "QUIET_SECS": "mcpgreen.engine.changes",
    "RESPONSE_FACTOR": "mcpgreen.settings.settings",
    "SEND_SECS": "mcpgreen.transports.http.wire.connection",
}


def variables_of(given: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a server with these settings and constants."""
    constants = {name: value for name, value in given.items() if name.isupper()}
    assert constants.keys() <= HOMES.keys(), constants
    variables = {f"MCPGREEN_{name.upper()}": _text(value) for name, value in given.items() if name not in constants}
    if constants:
        variables |= {VARIABLE: json.dumps(constants), "PYTHONPATH": f"{AT_START}{os.pathsep}{AT_START.parents[2]}"}
    return variables


def apply() -> None:
    """Take the constants from the environment of this process. Modules that have imported one get it, too."""
    for name, value in json.loads(os.environ.pop(VARIABLE, "{}")).items():
        home = importlib.import_module(HOMES[name])
        before = getattr(home, name)
        for module in [module for key, module in sys.modules.items() if key.startswith("mcpgreen")]:
            if vars(module).get(name) is before:
                setattr(module, name, value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
