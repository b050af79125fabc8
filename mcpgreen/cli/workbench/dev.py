"""`mcpgreen dev`: serve a project in this process, and the workbench for it at a local address, until Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys

import gevent
from gevent.event import Event

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say
from mcpgreen.cli.workbench.api import Api
from mcpgreen.cli.workbench.door import NAMES, Door, LocalServer
from mcpgreen.engine.server import Server
from mcpgreen.errors import UsageError
from mcpgreen.project.project import require_tmp_root
from mcpgreen.transports.http.serving import STOP_SIGNALS
from mcpgreen.transports.http.wire import listening
from mcpgreen.transports.http.wire.listening import MAX_PORT, Address

MAX_CONNECTIONS = 64
MAX_BODY_BYTES = 4 << 20
DISPLAYS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def run(options: Options) -> int:
    port = options["--port"]
    if not (port.isdecimal() and int(port) <= MAX_PORT):
        raise UsageError(f"--port must be a number up to {MAX_PORT}.")
    project, settings, environ = open_named(options, logs_notes=True)
    require_tmp_root(project, settings)
    journal.set_level(settings.stderr_level)
    try:
        listener = listening.listen(Address(NAMES[0], int(port)))
    except UsageError as error:  # which names another option
        raise UsageError(f"--port {port}: this port cannot be used; choose another one, or 0 for any") from error
    door = Door(listening.address_of(listener).port)
    if not options["--no-open"] and (sys.platform == "darwin" or any(map(os.environ.get, DISPLAYS))):
        _open_browser(door.url)
    os.chdir(project.root)
    server = Server(settings.with_values(observe="on"), project, environ=environ)
    api = Api(server, door)
    http = LocalServer(listener, api, max_connections=MAX_CONNECTIONS, max_body_bytes=MAX_BODY_BYTES)
    stop_wanted = Event()
    signals = [gevent.signal_handler(number, stop_wanted.set) for number in STOP_SIGNALS]
    try:
        server.watch()
        server.observation.begin()  # at once, and whatever the setting is: the page looks by the same way as others
        http.start()
        say(f"The workbench of {project.server_name()}: {door.url}\nPress Ctrl-C to stop it.\n")
        stop_wanted.wait()
    finally:
        http.close()
        api.close()
        server.stop()
        http.end_connections()
        for handler in signals:
            handler.cancel()
    return 0


def _open_browser(url: str) -> None:
    """Start the browser, as a process that is not ours: a server takes whatever its children leave for leftovers of
    scripts, and ends it. So this is done before there is a server; the browser's request waits meanwhile."""
    command = ["sh", "-c", '"$0" -I -m webbrowser "$1" >/dev/null 2>&1 &', sys.executable, url]
    subprocess.run(command, stdin=subprocess.DEVNULL, start_new_session=True, check=False)
