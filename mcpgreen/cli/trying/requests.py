"""`mcpgreen list`, `run-tool`, `read`, `prompt` and `complete`: send a client's requests to a real server in this
process, and print the answers."""

from __future__ import annotations

import base64
import difflib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import gevent

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import described_stem, stem_of
from mcpgreen.catalog.tree_scan import Loss
from mcpgreen.cli.checking.findings import print_findings
from mcpgreen.cli.checking.inputs import unseen_inputs
from mcpgreen.cli.checking.item_checks import discoveries
from mcpgreen.cli.checking.places import description_beside
from mcpgreen.cli.checking.remedies import explained
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.commands import Options
from mcpgreen.cli.opening import open_named, seconds
from mcpgreen.cli.output import print_json, say, tell
from mcpgreen.cli.trying.local_client import LocalClient, Refused
from mcpgreen.cli.trying.person import answer_for, arguments_of, calls_of, values_of
from mcpgreen.cli.trying.screen import Bars, Screen, print_outcome, wants_json
from mcpgreen.engine.server import Server
from mcpgreen.errors import InternalError, InvalidParams, McpgreenError, RpcError, UsageError
from mcpgreen.features.tools import terms_of
from mcpgreen.project.project import Project, find_project, require_tmp_root
from mcpgreen.protocol.revisions import SKILLS_EXTENSION
from mcpgreen.running.hooks import sourced_variables
from mcpgreen.running.warm_python import why_fresh
from mcpgreen.settings.rows import rows_of
from mcpgreen.settings.settings import Settings, load
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

PROMPT = "prompt:"
MOST_ARGUMENTS = 8  # named in a list


class Kind(NamedTuple):
    word: str  # on the command line
    member: str  # of the answer
    method: str
    columns: tuple[str, ...]
    remedy: str  # if there are none


BY_NAME = ("name", "description", "arguments", "from")
OF_RESOURCES = ("name", "type", "from")
OF_SKILLS = ("name", "description", "files", "from")
DESCRIBED = "Put a description with a uriTemplate into resources/"
KINDS = (
    Kind("tools", "tools", "tools/list", BY_NAME, "Put an executable into tools/"),
    Kind("resources", "resources", "resources/list", ("uri", *OF_RESOURCES), "Put a file into resources/"),
    Kind("templates", "resourceTemplates", "resources/templates/list", ("uri template", *OF_RESOURCES), DESCRIBED),
    Kind("prompts", "prompts", "prompts/list", BY_NAME, "Put a text file into prompts/"),
    Kind("skills", "skills", "skills/list", OF_SKILLS, "Write one with mcpgreen scaffold skill NAME"),
)


@contextmanager
def serving(
    options: Options,
    *,
    environ: Mapping[str, str] = os.environ,
    adapt: Callable[[Settings], Settings] = lambda settings: settings,
    kind: str = "",
) -> Iterator[tuple[Server, Project]]:
    """Run a server for the project that a command line names, then print what was wrong with its files. If the command
    line has the NAME of an item of this `kind`, that is about the item."""
    project, settings, environ = open_named(options, environ, logs_notes=True)
    require_tmp_root(project, settings)
    # Interpreters that are started ahead do not pay for a few calls.
    server = Server(adapt(settings).with_values(warm_python=False), project, environ=environ)
    warnings: list[str] = []
    hints: list[str] = []
    catalog = server.services.catalog
    catalog.logs_warnings, catalog.on_warning, catalog.on_hint = False, warnings.append, hints.append
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)  # Ctrl-C needs no traceback
    try:
        yield server, project
    finally:
        server.stop()
    name = options["NAME"] if kind else ""
    with suppress(InternalError):  # the command has reported it
        item = server.services.snapshot(kind).by_name.get(name) if kind in server.services.offered else None
        _report(project, warnings, hints, name=name, path=getattr(item, "path", None))


def _report(project: Project, warnings: list[str], hints: list[str], *, name: str, path: str | None) -> None:
    """Print what is wrong with the item of this name, or why there is none, and the number of other problems."""
    findings = [explained(project, "", each) for each in warnings if name or type(each) is not Loss]  # a list has it
    findings += [explained(project, "", each, level="info") for each in hints if not path]
    places = {project.shown(each) for each in (path, path and description_beside(path)) if each}
    for directory, file in (os.path.split(each.subject) for each in findings if name and not path):
        if name in (file, stem_of(file), described_stem(file), os.path.basename(directory)):
            places.add(os.path.join(directory, file))
    others = sum(each.subject not in places and each.level != "info" for each in findings)
    more = f"{others} problem{'s' * (others != 1)} in {'other files' if name else 'the project'}; run mcpgreen validate"
    # The answer says why a file is not trusted.
    if own := [each for each in findings if each.subject in places and each.code != "writable"]:
        print_findings(own, end=f"; {more}" if others else "", file=sys.stderr)
    elif others:
        journal.warning("%s", more)


def run_list(options: Options) -> int:
    word = options["KIND"]
    if options["--processes"]:
        raise McpgreenError("This version cannot ask running servers. At level info, their log names the processes.")
    if word is not None and word not in [kind.word for kind in KINDS]:
        raise UsageError(f"{word}: the kind must be one of {', '.join(kind.word for kind in KINDS)}.")
    with serving(options) as (server, project):
        client, has_skills = LocalClient(server), SKILLS_EXTENSION in server.services.offered
        offered = [kind for kind in KINDS if has_skills or kind.word != "skills"]
        kinds = offered if word is None else [kind for kind in KINDS if kind.word == word]
        lists = {kind.member: client.all_of(kind.method, kind.member) if kind in offered else [] for kind in kinds}
        missing = [each for each in left_out(server) if each.kind in lists or word is None]
        if options["--json"]:
            print_json({**lists, "leftOut": [each._asdict() for each in missing]})
            return 0
        screen = Screen(options)
        counts = []
        for kind in kinds:
            if rows := _list_rows(kind, lists[kind.member], server):
                screen.table(f"{kind.word} ({len(rows)})", kind.columns, rows)
                counts.append(f"{len(rows)} {kind.word[: -1 if len(rows) == 1 else None]}")
        if rows := list(dict.fromkeys((each.path, each.reason) for each in missing)):
            screen.table(f"left out ({len(rows)})", ("file", "reason"), rows)
            counts.append(f"{len(rows)} left out")
        if not counts:
            what = "nothing" if word is None else f"no {word}"
            screen.note(f"{project.root} offers {what} yet. {kinds[0].remedy}, then list again.")
        screen.text(", ".join(counts), "bold")
    return 0


def _list_rows(kind: Kind, items: Iterable[Json], server: Server) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for entry, item in zip(items, server.services.snapshot(kind.member).items, strict=True):
        path = getattr(item, "path", None)
        origin = os.path.relpath(path, server.services.project.root) if path else ""
        if kind.member in ("tools", "prompts"):
            rows.append((entry["name"], entry.get("description", ""), _argument_names(entry), origin))
        elif kind.member == "skills":
            about = entry["frontmatter"]
            rows.append((about["name"], about["description"], str(len(entry["resources"])), origin))
        else:
            uri = entry.get("uri") or entry.get("uriTemplate", "")
            rows.append((uri, entry["name"], entry.get("mimeType", ""), origin))
    return rows


def _argument_names(entry: Json) -> str:
    """Return the names of the first arguments; required ones come first and have a !."""
    schema = entry.get("inputSchema", {})
    required = schema.get("required", ())
    names = {name: name in required for name in schema.get("properties") or {}}
    names |= {each["name"]: bool(each.get("required")) for each in entry.get("arguments", ())}
    marked = sorted((name + "!" * names[name] for name in names), key=lambda name: not name.endswith("!"))
    more = len(marked) - MOST_ARGUMENTS
    return " ".join(marked) if more <= 1 else f"{' '.join(marked[:MOST_ARGUMENTS])} … {more} more"


def run_read(options: Options) -> int:
    uri = options["URI"]
    with serving(options) as (server, _):
        client = LocalClient(server, answer=answer_for(options["--answer"]))
        listed = client.all_of("resources/list", "resources")
        # People know a resource by its name, too.
        uri = next((each["uri"] for each in listed if each["name"] == uri), uri)
        try:
            result = client.ask("resources/read", {"uri": uri})
        except Refused as refused:
            journal.error("%s", refused)
            for hint in suggestions(uri, [each[key] for key in ("uri", "name") for each in listed]):
                journal.info("%s", hint)
            return 1
    if options["--json"]:
        print_json(result)
        return 0
    for contents in result["contents"]:
        if sys.stdout.isatty():
            Screen(options).resource(contents)
        else:
            content = contents["text"].encode("utf-8") if "text" in contents else base64.b64decode(contents["blob"])
            sys.stdout.buffer.write(content)
    return 0


def run_prompt(options: Options) -> int:
    name = options["NAME"]
    with serving(options, kind="prompts") as (server, _):
        client = LocalClient(server, answer=answer_for(options["--answer"]))
        try:
            result = client.ask("prompts/get", {"name": name, "arguments": values_of(options["ARGUMENT"], {})})
        except Refused as refused:
            journal.error("%s", refused)
            _report_similar(server, "prompts", name)
            return 1
    if options["--json"]:
        print_json(result)
        return 0
    screen = Screen(options)
    for message in result["messages"]:
        if len(result["messages"]) > 1:
            screen.text(f"[{message['role']}]", "bold")
        screen.content([message["content"]])
    return 0


def run_complete(options: Options) -> int:
    ref = options["REF"]
    target = {"type": "ref/resource", "uri": ref}
    if ref.startswith(PROMPT):
        target = {"type": "ref/prompt", "name": ref.removeprefix(PROMPT)}
    params: Json = {"ref": target, "argument": {"name": options["ARGUMENT"], "value": options["PREFIX"] or ""}}
    if known := values_of(options["--with"], {}):
        params["context"] = {"arguments": known}
    with serving(options) as (server, _):
        result = LocalClient(server).ask("completion/complete", params)
    if options["--json"]:
        print_json(result)
        return 0
    completion = result["completion"]
    for value in completion["values"]:
        say(f"{value}\n")
    if not completion["values"]:
        Screen(options).note("(nothing)")
    elif completion.get("hasMore"):
        total = completion.get("total")
        Screen(options).note(f"… and more{f', {total} in all' if total else ''}")
    return 0


class LeftOut(NamedTuple):
    """Something on disk that is not offered."""

    kind: str
    path: str
    reason: str


def left_out(server: Server) -> list[LeftOut]:
    """Return the files in the project's folders that are not offered, with the reason."""
    project, settings = server.services.project, server.services.settings
    registration, error = registration_of(project, settings, os.environ)
    if error is not None:
        return [LeftOut("project", project.shown(error.path), error.reason)]
    found: list[LeftOut] = []
    for kind, discovery in discoveries(project, registration).items():
        if isinstance(discovery, OSError):
            continue  # the list reports it
        losses = [warning for warning in discovery.warnings if isinstance(warning, Loss)]
        for text in [*losses, *discovery.hints]:
            path, _, reason = text.partition(": ")
            found.append(LeftOut(kind, path, reason))
    return found


def suggestions(name: str, names: Iterable[str]) -> list[str]:
    """Suggest what the user may have meant by an unknown name."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return [f"Did you mean {' or '.join(near)}?"] if near else []


def run_tool(options: Options) -> int:
    """Return 1 if the script fails or is not started, or with `--check` if the tool reports an error; else 0."""
    timeout_secs = seconds(options)
    arguments = arguments_of(options["--args"])
    adapt = partial(_with_options, options=options, timeout_secs=timeout_secs)
    environ = _source_files(options)
    with serving(options, environ=environ, adapt=adapt, kind="tools") as (server, project):
        tool = server.services.snapshot("tools").by_name.get(options["NAME"])
        schema = tool.definition.get("inputSchema", {}) if tool is not None else {}
        arguments |= values_of(options["ARGUMENT"], schema.get("properties") or {})
        _report_unknown_arguments(options["NAME"], arguments, schema)
        if tool is not None:
            services = server.services
            for problem in unseen_inputs(tool, project.shown(tool.path), services.settings, services.environ):
                journal.warning("%s; %s", problem.sentence, problem.fix)
        if options["--print-env"]:
            return _print_env(server)
        if options["--dry-run"]:
            return _dry_run(server, options["NAME"], arguments, timeout_secs)
        params: Json = {"name": options["NAME"], "arguments": arguments}
        params |= {} if timeout_secs is None else {"timeoutSecs": timeout_secs}
        if options["--task"]:
            server.services.keeper_environ = {**environ, **_changed_variables(server.services.settings)}
        status = _call(server, calls_of(params, options, schema.get("properties") or {}), options)
        for variable in tool.description.env if tool is not None else ():
            if variable.endswith("!") and not server.services.environ.get(variable[:-1]):
                journal.info("Set it in this shell (export %s=...), and run the tool again.", variable[:-1])
        return status


def _report_unknown_arguments(name: str, arguments: Json, schema: Json) -> None:
    """Report unknown arguments. Most schemas allow them, but most are mistyped."""
    properties = schema.get("properties") or {}
    if "additionalProperties" in schema or "patternProperties" in schema:
        return
    for key in (key for key in arguments if key not in properties):
        hint = suggestions(key, properties) if properties else ["Its description does not list any arguments."]
        journal.info("%s", " ".join([f"{name} has no argument {key}.", *hint]))


def _call(server: Server, calls: Iterable[Json], options: Options) -> int:
    screen = Screen(options)
    bars = None if wants_json(options) else Bars(screen)
    on_notification = bars.tell if bars is not None else _print_frame if options["--verbose"] else None
    meta = {} if on_notification is None else {"_meta": {"progressToken": "run-tool"}}
    answer, has_tasks = answer_for(options["--answer"]), options["--task"]
    client = LocalClient(server, answer=answer, on_notification=on_notification, has_tasks=has_tasks)
    statuses = [_call_once(client, {**params, **meta}, options, screen, bars) for params in calls]
    if options["--verbose"]:
        _report_start(server, options["NAME"])
    return max(statuses)


def _call_once(client: LocalClient, params: Json, options: Options, screen: Screen, bars: Bars | None) -> int:
    try:
        result = client.call(params)
    except Refused as refused:
        if bars is None:
            print_json({"_mcpToolError": True, **refused.error})
        else:
            screen.problem(str(refused))
        if refused.error["code"] == InvalidParams.code:
            _report_similar(client.server, "tools", params["name"])
        return 1
    finally:
        if bars is not None:
            bars.close()
    return print_outcome(result, options, screen, as_json=bars is None)


def _report_start(server: Server, name: str) -> None:
    """Report whether a server would fork the tool, because run-tool never does."""
    services = server.services
    snapshot = services.snapshot("tools")
    tool = snapshot.by_name.get(name)
    script = terms_of(services, snapshot, tool).script if tool and not tool.description.stays else None
    reason = why_fresh(script, services.environment.with_more()) if script else None
    if reason is not None:
        so = f"a server would, too: {reason}" if reason else "a server would fork a running one"
        journal.info("run-tool starts a new Python process for %s; %s", name, so)


def _print_frame(frame: Json) -> None:
    tell(jsontext.dumps(frame).decode("ascii") + "\n")


def _report_similar(server: Server, kind: str, name: str) -> None:
    """Report what the user may have meant, if there is no such tool or prompt."""
    known = server.services.snapshot(kind).by_name if kind in server.services.offered else None
    if known is None or name in known:
        return
    inside = [each.name for each in known.values() if kind == "tools" and stem_of(os.path.basename(each.path)) == name]
    own = [f"{name} is a file that contains the tools {', '.join(sorted(inside))}."]
    for hint in own if inside else suggestions(name, known):
        journal.info("%s", hint)


def _source_files(options: Options) -> Mapping[str, str]:
    """Return the environment after the shell files that `--source` names."""
    environ: Mapping[str, str] = os.environ
    for file in options["--source"]:
        path = os.path.abspath(file)
        if not os.path.isfile(path):  # not here, so it is in the project
            root = options["--project-root"] or load({}, environ, {}).project_root
            project = find_project(root or None, cwd=os.getcwd(), directories={})
            path = os.path.join(project.root, file) if project is not None else file
        if not os.path.isfile(path):
            raise UsageError(f"--source {file}: no such file here or in the project.")
        environ = sourced_variables(path, environ, directory=os.getcwd()).applied_to(environ)
    return environ


def _changed_variables(settings: Settings) -> dict[str, str]:
    """Return the settings that a command has changed, as variables for another process."""
    changed = [row for row in rows_of(Settings) if settings.origin(row.name) == "code"]
    values = ((row.variables[0], getattr(settings, row.name)) for row in changed)
    return {name: " ".join(value) if isinstance(value, tuple) else str(value) for name, value in values}


def _with_options(settings: Settings, options: Options, timeout_secs: float | None) -> Settings:
    """Return the settings with the timeout, roots and permissions of this run."""
    settings = settings.with_values(result_meta="always")
    if options["--task"]:
        settings = settings.with_values(tasks="auto", task_after_secs=0.0, tasks_survive_client=True)
    if timeout_secs is not None:  # the user may go beyond the limit for clients
        settings = settings.with_values(max_timeout_secs=max(timeout_secs, settings.max_timeout_secs))
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
        _report_similar(server, "tools", name)
        return 1
    try:
        terms = terms_of(services, snapshot, tool)
        services.policy.require_allowed(name, terms.entry_json, services.next_serial())
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
