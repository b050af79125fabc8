"""`mcpgreen list`, `read`, `prompt` and `complete`: what a client is offered, and what it gets for the asking."""

from __future__ import annotations

import base64
import difflib
import os
import sys
from collections.abc import Iterable
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import stem_of
from mcpgreen.catalog.tree_scan import Loss
from mcpgreen.cli.checking.item_checks import discoveries
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.cli.commands import Options
from mcpgreen.cli.output import print_json, say
from mcpgreen.cli.trying.client import LocalClient, Refused, serving
from mcpgreen.cli.trying.person import answer_for
from mcpgreen.cli.trying.screen import Screen
from mcpgreen.cli.trying.values import values_of
from mcpgreen.engine.server import Server
from mcpgreen.errors import UsageError
from mcpgreen.text.json_types import Json

PROMPT = "prompt:"


class Kind(NamedTuple):
    word: str  # on the command line
    member: str  # of the answer
    method: str
    columns: tuple[str, ...]
    remedy: str  # if there are none


BY_NAME = ("name", "description", "arguments", "from")
OF_RESOURCES = ("name", "type", "from")
DESCRIBED = "Put a description with a uriTemplate into resources/"
KINDS = (
    Kind("tools", "tools", "tools/list", BY_NAME, "Put an executable into tools/"),
    Kind("resources", "resources", "resources/list", ("uri", *OF_RESOURCES), "Put a file into resources/"),
    Kind("templates", "resourceTemplates", "resources/templates/list", ("uri template", *OF_RESOURCES), DESCRIBED),
    Kind("prompts", "prompts", "prompts/list", BY_NAME, "Put a text into prompts/"),
)


def run_list(options: Options) -> int:
    word = options["KIND"]
    if word is not None and word not in [kind.word for kind in KINDS]:
        raise UsageError(f"{word}: a kind is one of {', '.join(kind.word for kind in KINDS)}.")
    kinds = [kind for kind in KINDS if word in (None, kind.word)]
    with serving(options) as (server, project):
        server.services.catalog.tells_losses = False  # we print them
        client = LocalClient(server)
        lists = {kind.member: client.all_of(kind.method, kind.member) for kind in kinds}
        missing = [each for each in left_out(server) if each.kind in lists or word is None]
        if options["--json"]:
            print_json({**lists, "leftOut": [each._asdict() for each in missing]})
            return 0
        screen = Screen(options)
        for kind in kinds:
            if rows := _list_rows(kind, lists[kind.member], server):
                screen.table(f"{kind.word} ({len(rows)})", kind.columns, rows)
        if missing:
            screen.table("left out", ("file", "reason"), dict.fromkeys((each.path, each.reason) for each in missing))
        if not any(lists.values()) and not missing:
            what = "nothing" if word is None else f"no {word}"
            screen.note(f"{project.root} offers {what} yet. {kinds[0].remedy} and list again.")
    return 0


def _list_rows(kind: Kind, items: Iterable[Json], server: Server) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for entry, item in zip(items, server.services.snapshot(kind.member).items, strict=True):
        path = getattr(item, "path", None)
        origin = os.path.relpath(path, server.services.project.root) if path else ""
        if kind.member in ("tools", "prompts"):
            rows.append((entry["name"], entry.get("description", ""), _argument_names(entry), origin))
        else:
            uri = entry.get("uri") or entry.get("uriTemplate", "")
            rows.append((uri, entry["name"], entry.get("mimeType", ""), origin))
    return rows


def _argument_names(entry: Json) -> str:
    """The names of the arguments; required ones have a !."""
    if "arguments" in entry:
        return " ".join(each["name"] + ("!" if each.get("required") else "") for each in entry["arguments"])
    schema = entry.get("inputSchema", {})
    required = schema.get("required", ())
    return " ".join(name + ("!" if name in required else "") for name in schema.get("properties") or {})


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
            return _explain(refused, suggestions(uri, [each[key] for key in ("uri", "name") for each in listed]))
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
    with serving(options) as (server, _):
        client = LocalClient(server, answer=answer_for(options["--answer"]))
        arguments = values_of(options["ARGUMENT"], {})
        try:
            result = client.ask("prompts/get", {"name": name, "arguments": arguments})
        except Refused as refused:
            known = server.services.snapshot("prompts").by_name
            return _explain(refused, [] if name in known else suggestions(name, known, left_out(server)))
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
    argument = {"name": options["ARGUMENT"], "value": options["PREFIX"] or ""}
    params: Json = {"ref": target, "argument": argument}
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


def _explain(refused: Refused, hints: Iterable[str]) -> int:
    """Log why the server refused, and what may help. Return the exit status."""
    journal.error("%s", refused)
    for hint in hints:
        journal.info("%s", hint)
    return 1


class LeftOut(NamedTuple):
    """Something on disk that is not offered."""

    kind: str
    path: str
    reason: str


def left_out(server: Server) -> list[LeftOut]:
    """The files in the project's folders that are not offered, with the reason."""
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


def suggestions(name: str, names: Iterable[str], missing: Iterable[LeftOut] = ()) -> list[str]:
    """What the user may have meant by an unknown name: similar names, and files of that name that are left out."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    question = [f"Did you mean {' or '.join(near)}?"] if near else []
    for each in missing:
        directory, file = os.path.split(each.path)
        if name in (file, stem_of(file), os.path.basename(directory)):
            question.append(f"{each.path}: {each.reason}")
    return question
