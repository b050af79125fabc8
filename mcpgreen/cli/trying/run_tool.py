"""`mcpgreen run-tool`: run one tool through a real server in this process and print the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import seconds
from mcpgreen.cli.output import print_json, say, tell
from mcpgreen.cli.trying.client import LocalClient, Refused, serving
from mcpgreen.cli.trying.offers import left_out, suggestions
from mcpgreen.cli.trying.person import answers_for
from mcpgreen.cli.trying.screen import Bars, Screen, wants_json
from mcpgreen.cli.trying.values import content_of, values_of
from mcpgreen.engine.server import Server
from mcpgreen.errors import InvalidParams, RpcError, UsageError
from mcpgreen.features.tools import terms_of
from mcpgreen.project.project import find_project
from mcpgreen.running.hooks import sourced_variables
from mcpgreen.running.warm_python import why_fresh
from mcpgreen.settings.settings import Settings, load
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json


def run(options: Options) -> int:
    """Return 1 if the script fails or is not started, or with `--check` if the tool reports an error; else 0."""
    timeout_secs = seconds(options)

    def adapt(settings: Settings) -> Settings:
        if timeout_secs is not None:  # the user may go beyond the limit for clients
            settings = settings.with_values(max_timeout_secs=max(timeout_secs, settings.max_timeout_secs))
        return _with_options(settings.with_values(result_meta="always"), options)

    try:
        arguments = _arguments(options["--args"])
    except ValueError as error:
        journal.error("%s", error)
        return 1
    with serving(options, environ=_source_files(options), adapt=adapt) as (server, _):
        tool = server.services.snapshot("tools").by_name.get(options["NAME"])
        schema = tool.definition.get("inputSchema", {}) if tool is not None else {}
        arguments |= values_of(options["ARGUMENT"], schema.get("properties") or {})
        _report_unknown_arguments(options["NAME"], arguments, schema)
        if options["--print-env"]:
            return _print_env(server)
        if options["--dry-run"]:
            return _dry_run(server, options["NAME"], arguments, timeout_secs)
        params: Json = {"name": options["NAME"], "arguments": arguments}
        if timeout_secs is not None:
            params["timeoutSecs"] = timeout_secs
        return _call(server, params, options)


def _report_unknown_arguments(name: str, arguments: Json, schema: Json) -> None:
    """Report unknown arguments. Most schemas allow them, but most are mistyped."""
    properties = schema.get("properties")
    if not properties or "additionalProperties" in schema or "patternProperties" in schema:
        return
    for key in arguments:
        if key not in properties:
            journal.info("%s", " ".join([f"{name} has no argument {key}.", *suggestions(key, properties)]))


def _call(server: Server, params: Json, options: Options) -> int:
    is_for_programs = wants_json(options)
    screen = Screen(options)
    bars = None if is_for_programs else Bars(screen)
    on_notification: Callable[[Json], object] | None = None
    if bars is not None:
        on_notification = bars.tell
    elif options["--verbose"]:
        on_notification = _print_frame
    if on_notification is not None:
        params = {**params, "_meta": {"progressToken": "run-tool"}}
    client = LocalClient(server, answers=answers_for(options["--answer"]), on_notification=on_notification)
    try:
        result = client.ask("tools/call", params)
    except Refused as refused:
        return _refused(refused, server, params["name"], screen, is_for_programs=is_for_programs)
    finally:
        if bars is not None:
            bars.close()
    if options["--verbose"]:
        _report_start(server, params["name"])
    has_failed = _has_failed(result) or (result["isError"] and options["--check"])
    said = result.get("_meta", {}).get("stderr", "")
    if is_for_programs:
        if options["--verbose"]:
            tell(said)
        print_json(result)
    else:
        if said and (has_failed or options["--verbose"]):
            screen.note(said.rstrip("\n"))
        screen.result(result)
    return 1 if has_failed else 0


def _report_start(server: Server, name: str) -> None:
    """Report whether a server would fork the tool, because run-tool never does."""
    services = server.services
    snapshot = services.snapshot("tools")
    tool = snapshot.by_name.get(name)
    if tool is None:
        return
    reason = why_fresh(terms_of(services, snapshot, tool).script, services.environment.with_more())
    if reason is not None:
        so = f"so does a server: {reason}" if reason else "a server forks it"
        journal.info("run-tool starts a Python for %s; %s", name, so)


def _print_frame(frame: Json) -> None:
    tell(jsontext.dumps(frame).decode("ascii") + "\n")


def _refused(refused: Refused, server: Server, name: str, screen: Screen, *, is_for_programs: bool) -> int:
    if is_for_programs:
        print_json({"_mcpToolError": True, **refused.error})
    else:
        screen.problem(str(refused))
    names = server.services.snapshot("tools").by_name
    if refused.error["code"] == InvalidParams.code and name not in names:
        _report_similar_tools(server, name)
    return 1


def _has_failed(result: Json) -> bool:
    """Whether the script failed, or was never started."""
    return bool(result["isError"]) and result.get("_meta", {}).get("exitCode") != 0


def _report_similar_tools(server: Server, name: str) -> None:
    if "tools" not in server.services.offered:
        return
    for hint in suggestions(name, server.services.snapshot("tools").by_name, left_out(server)):
        journal.info("%s", hint)


def _source_files(options: Options) -> Mapping[str, str]:
    """The environment after the shell files that `--source` names."""
    environ: Mapping[str, str] = os.environ
    for file in options["--source"]:
        path = _file_to_source(file, options["--project-root"] or load({}, environ, {}).project_root)
        environ = sourced_variables(path, environ, directory=os.getcwd()).applied_to(environ)
    return environ


def _file_to_source(file: str, project_root: str) -> str:
    """The file in the current directory, or else in the project."""
    if os.path.isfile(file):
        return os.path.abspath(file)
    project = find_project(project_root or None, cwd=os.getcwd(), directories={})
    path = os.path.join(project.root, file) if project is not None else file
    if not os.path.isfile(path):
        raise UsageError(f"--source {file}: there is no such file here or in the project.")
    return path


def _arguments(text: str) -> Json:
    given = f"--args {text}" if text.startswith("@") else "--args"
    try:
        value = jsontext.loads(content_of(text))
    except UsageError as error:
        raise ValueError(f"--args {error}") from error
    except ValueError as error:
        raise ValueError(f"{given} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{given} must be a JSON object.")
    return value


def _with_options(settings: Settings, options: Options) -> Settings:
    """The settings with the roots and permissions of this run."""
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
    say("\n".join(dict.fromkeys(lines)) + "\n", is_exact=True)
    return 0


def _dry_run(server: Server, name: str, arguments: Json, timeout_secs: float | None) -> int:
    services = server.services
    snapshot = services.snapshot("tools")
    tool = snapshot.by_name.get(name)
    if tool is None:
        print_json({"_mcpToolError": True, "code": -32602, "message": f"Tool '{name}' not found"})
        _report_similar_tools(server, name)
        return 1
    try:
        terms = terms_of(services, snapshot, tool)
        services.policy.require_allowed(name, terms.entry_json, services.runner.next_serial())
        terms.script.require_safe()
        problems, _ = terms.checked_arguments(arguments, jsontext.dumps(arguments))
    except RpcError as error:
        problems = [error.message]
    timeout_secs = timeout_secs or tool.description.timeout_secs or services.settings.default_tool_timeout
    say(
        f"Tool: {tool.name} ({tool.relative_path})\n"
        f"Args: {len(jsontext.dumps(arguments))} bytes\n"
        f"Roots: {', '.join(services.roots.paths)}\n"
        f"Timeout: {timeout_secs:g}\n"
        f"Status: {'; '.join(problems) or 'ready'}\n"
    )
    return 1 if problems else 0
