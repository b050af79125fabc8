"""What stdio does not need, it does not load; nor does HTTP load what its settings do not ask for."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

from tests.support.project import ProjectBuilder
from tests.support.wire import clean_environment

LISTED = re.compile(r"^import time: .*\| +(\S+)$", re.MULTILINE)
COMMAND = [sys.executable, "-X", "importtime", "-m", "mcpgreen", "serve"]


def imported_by(project: ProjectBuilder, *options: str) -> set[str]:
    """By a server that is told to end as soon as it is there."""
    command = [*COMMAND, *options, "--project-root", str(project.root)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment({}),
        text=True,
    )
    assert process.stdin is not None and process.stderr is not None
    said = ""
    if options:
        for line in process.stderr:
            said += line
            if line.startswith("mcpgreen: serving"):
                break
        process.send_signal(signal.SIGTERM)
    said += process.communicate(timeout=30)[1]
    return set(LISTED.findall(said))


def test_stdio_loads_nothing_of_http(project: ProjectBuilder) -> None:
    imported = imported_by(project)

    assert "mcpgreen.engine.server" in imported
    assert [name for name in imported if name.startswith("mcpgreen.transports.http")] == []
    assert imported.isdisjoint({"gevent.pywsgi", "jwt", "prometheus_client"})


def test_http_loads_no_jwt_without_an_issuer(project: ProjectBuilder) -> None:
    imported = imported_by(project, "--http", "127.0.0.1:0")

    assert "mcpgreen.transports.http.serving" in imported
    assert imported.isdisjoint({"jwt", "cryptography"})
