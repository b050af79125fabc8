"""`mcpgreen run-tool`: run one tool through a real server in this process and print the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import gevent

from mcpgreen import journal, jsontext
from mcpgreen.catalog.project import Project
from mcpgreen.engine.server import Server
from mcpgreen.errors import UsageError
from mcpgreen.features.call import Call
from mcpgreen.features.sink import Line
from mcpgreen.features.tool_terms import terms_of
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.settings import Settings

Json = dict[str, Any]


class ListSink:
    """Keeps the lines, and shows notifications if wanted; nobody has to wait."""

    def __init__(self, *, shows_notifications: bool = False) -> None:
        self.lines: list[bytes] = []
        self._shows_notifications = shows_notifications

    def put(self, line: Line, call: Call | None = None, *, is_droppable: bool = False) -> None:
        whole = line if isinstance(line, bytes) else b"".join(line)
        self.lines.append(whole)
        if is_droppable and self._shows_notifications:
            sys.stderr.write(whole.decode("ascii") + "\n")

    def wait_for_room(self) -> None:
        return

    def expect(self) -> None:
        return

    def withdraw(self) -> None:
        return


def run_tool(options: Json, project: Project, settings: Settings, environ: Mapping[str, str]) -> int:
    """0 when the tool gave a result, also one that says isError; 1 for an error of the protocol."""
    try:
        arguments = _arguments(options["--args"])
    except ValueError as error:
        journal.error("%s", error)
        return 1
    server = Server(_with_options(settings, options), project, environ=environ)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # who presses Ctrl-C needs no report of it
    try:
        if options["--print-env"]:
            return _print_env(server)
        if options["--dry-run"]:
            return _dry_run(server, options, arguments)
        params: Json = {"name": options["NAME"], "arguments": arguments}
        if options["--timeout"] is not None:
            params["timeoutSecs"] = _seconds(options["--timeout"])
        answer = _answer(server, params, is_verbose=options["--verbose"])
    finally:
        server.stop()
    if "error" in answer:
        _print({"_mcpToolError": True, **answer["error"]})
        return 1
    if options["--verbose"]:
        sys.stderr.write(answer["result"].get("_meta", {}).get("stderr", ""))
    _print(answer["result"])
    return 0


def _answer(server: Server, params: Json, *, is_verbose: bool) -> Json:
    """One handshake and one call."""
    sink = ListSink(shows_notifications=is_verbose)
    if is_verbose:
        params = {**params, "_meta": {"progressToken": "run-tool"}}
    link = server.connect(sink)
    hello = {"protocolVersion": LATEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": {"name": "run-tool"}}
    link.receive({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    link.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})
    link.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    link.idle.wait()
    answers = [message for message in map(jsontext.loads, sink.lines) if message.get("id") == 1]
    answer: Json = answers[0]
    return answer


def _arguments(text: str) -> Json:
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--args {text}: {error}") from error
    try:
        value = jsontext.loads(text)
    except ValueError as error:
        raise ValueError(f"--args is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("--args must be a JSON object.")
    return value


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError("--timeout must be a number of seconds.") from error


def _with_options(settings: Settings, options: Json) -> Settings:
    """Roots and permissions that hold for this run only."""
    if options["--roots"]:
        settings = settings.with_values(roots=":".join(options["--roots"].split(",")))
    allowed = list(options["--allow"]) + ([options["NAME"]] if options["--allow-self"] else [])
    if options["--allow-all"]:
        settings = settings.with_values(tool_allowlist=("*",))
    elif allowed:
        settings = settings.with_values(tool_allowlist=(*settings.tool_allowlist, *allowed))
    return settings


def _print_env(server: Server) -> int:
    services = server.services
    lines = [
        f"MCPGREEN_PROJECT_ROOT={services.project.root}",
        *(f"{name}={value}" for name, value in sorted(services.environment.base.items())),
        *(f"ROOT[{index}]={path}" for index, path in enumerate(services.roots.paths)),
    ]
    sys.stdout.write("\n".join(dict.fromkeys(lines)) + "\n")
    return 0


def _dry_run(server: Server, options: Json, arguments: Json) -> int:
    snapshot = server.services.snapshot("tools")
    tool = snapshot.by_name.get(options["NAME"])
    if tool is None:
        _print({"_mcpToolError": True, "code": -32602, "message": f"Tool '{options['NAME']}' not found"})
        return 1
    problems = terms_of(server.services, snapshot, tool).argument_problems(arguments)
    given_secs = None if options["--timeout"] is None else _seconds(options["--timeout"])
    timeout_secs = given_secs or tool.timeout_secs or server.services.settings.default_tool_timeout
    sys.stdout.write(
        f"Tool: {tool.name} ({tool.relative_path})\n"
        f"Args: {len(jsontext.dumps(arguments))} bytes\n"
        f"Roots: {', '.join(server.services.roots.paths)}\n"
        f"Timeout: {timeout_secs:g}\n"
        f"Status: {'; '.join(problems) or 'ready'}\n"
    )
    return 1 if problems else 0


def _print(value: Json) -> None:
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
    sys.stdout.buffer.flush()
