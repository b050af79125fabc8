"""`mcpgreen run-tool`: run one tool through a real server in this process and print the result."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import gevent

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import stem_of
from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.engine.server import Server
from mcpgreen.errors import InvalidParams, RpcError
from mcpgreen.features.prepared_tool import terms_of
from mcpgreen.links.memory import MemorySink
from mcpgreen.project.project import Project
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

Json = dict[str, Any]


def run_tool(
    options: Json, project: Project, settings: Settings, environ: Mapping[str, str], *, timeout_secs: float | None
) -> int:
    """0 when the tool's own status is 0, whatever it says; 1 for any other, for refused arguments and for an error of
    the protocol: so `run-tool NAME || exit 1` does what it says."""
    try:
        arguments = _arguments(options["--args"])
    except ValueError as error:
        journal.error("%s", error)
        return 1
    if timeout_secs is not None:  # whoever runs the command may choose it, unlike a client
        settings = settings.with_values(max_timeout_secs=max(timeout_secs, settings.max_timeout_secs))
    server = Server(_with_options(settings, options), project, environ=environ)
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # who presses Ctrl-C needs no report of it
    try:
        if options["--print-env"]:
            return _print_env(server)
        if options["--dry-run"]:
            return _dry_run(server, options["NAME"], arguments, timeout_secs)
        params: Json = {"name": options["NAME"], "arguments": arguments}
        if timeout_secs is not None:
            params["timeoutSecs"] = timeout_secs
        answer = _answer(server, params, is_verbose=options["--verbose"])
        is_refused = answer.get("error", {}).get("code") == InvalidParams.code
        if is_refused and options["NAME"] not in server.services.snapshot("tools").by_name:
            _tell_why_missing(project, options["NAME"])
    finally:
        server.stop()
    if "error" in answer:
        _print({"_mcpToolError": True, **answer["error"]})
        return 1
    if options["--verbose"]:
        sys.stderr.write(answer["result"].get("_meta", {}).get("stderr", ""))
    _print(answer["result"])
    return 1 if _has_failed(answer["result"]) else 0


def _has_failed(result: Json) -> bool:
    """Whether the script failed, or was never started."""
    return bool(result["isError"]) and result.get("_meta", {}).get("exitCode") != 0


def _answer(server: Server, params: Json, *, is_verbose: bool) -> Json:
    """One handshake and one call."""
    sink = MemorySink()
    if is_verbose:
        sink = MemorySink(on_notification=lambda line: sys.stderr.write(line.decode("ascii") + "\n"))
        params = {**params, "_meta": {"progressToken": "run-tool"}}
    link = server.connect(sink, transport="stdio")
    hello = {"protocolVersion": LATEST_HANDSHAKE.name, "capabilities": {}, "clientInfo": {"name": "run-tool"}}
    link.receive({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    link.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})
    link.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    link.stream.idle.wait()
    answer: Json = next(message for message in sink.responses if message.get("id") == 1)
    return answer


def _arguments(text: str) -> Json:
    given = "--args"
    if text.startswith("@"):
        given = f"--args {text}"
        try:
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{given}: {error}") from error
    try:
        value = jsontext.loads(text)
    except ValueError as error:
        raise ValueError(f"{given} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{given} must be a JSON object.")
    return value


def _with_options(settings: Settings, options: Json) -> Settings:
    """Roots and permissions that hold for this run only."""
    if options["--roots"]:
        settings = settings.with_values(roots=":".join(options["--roots"].split(",")))
    allowed = list(options["--allow"]) + ([options["NAME"]] if options["--allow-self"] else [])
    if options["--allow-all"]:
        settings = settings.with_values(tool_allowlist=("*",))
    elif allowed and (settings.tool_allowlist or settings.tool_allow_default == "deny"):
        # Where nothing is restricted, a list would be the first restriction.
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


def _dry_run(server: Server, name: str, arguments: Json, timeout_secs: float | None) -> int:
    services = server.services
    snapshot = services.snapshot("tools")
    tool = snapshot.by_name.get(name)
    if tool is None:
        _print({"_mcpToolError": True, "code": -32602, "message": f"Tool '{name}' not found"})
        _tell_why_missing(services.project, name)
        return 1
    try:
        terms = terms_of(services, snapshot, tool)
        services.policy.require_allowed(name, terms.entry_json, services.runner.next_serial())
        terms.script.require_safe()
        problems, _ = terms.checked_arguments(arguments, jsontext.dumps(arguments))
    except RpcError as error:
        problems = [error.message]
    timeout_secs = timeout_secs or tool.description.timeout_secs or services.settings.default_tool_timeout
    sys.stdout.write(
        f"Tool: {tool.name} ({tool.relative_path})\n"
        f"Args: {len(jsontext.dumps(arguments))} bytes\n"
        f"Roots: {', '.join(services.roots.paths)}\n"
        f"Timeout: {timeout_secs:g}\n"
        f"Status: {'; '.join(problems) or 'ready'}\n"
    )
    return 1 if problems else 0


def _tell_why_missing(project: Project, name: str) -> None:
    """What is known of a script that may be the one that was meant."""
    for hint in discover_tools(project, survey(project, [project.tools_dir])).hints:
        directory, file_name = os.path.split(hint.partition(": ")[0])
        if name in (file_name, stem_of(file_name), os.path.basename(directory)):
            journal.info("%s", hint)


def _print(value: Json) -> None:
    sys.stdout.buffer.write(jsontext.dumps(value) + b"\n")
    sys.stdout.buffer.flush()
