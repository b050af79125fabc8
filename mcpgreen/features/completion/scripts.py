"""Completion scripts: which one answers for an item, how it is asked, and what its output means.

A script is registered under the name of the item, or lies beside it: `NAME.completion` or `NAME.completion.sh`. It is
asked through its environment, and prints an array of strings or an object that also says what follows.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.manual.items import CompletionScript
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.features.scripts import ScriptFiles, allowed_secs, encoded, output_or_error
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.scripts import tracing
from mcpgreen.running.scripts.environment import AUTH_VARIABLE, described
from mcpgreen.running.scripts.launch import Limits, Script, ScriptRun, run_script, unheard
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

Item = Prompt | Resource | ResourceTemplate

MAX_REQUEST_BYTES = 65_536  # it has to fit into one variable


class CompletionRequest(NamedTuple):
    """What is to be completed: for whom, which argument, and how much of it is typed."""

    name: str
    item: Item | None  # None: only a registered script has this name
    argument: str
    typed: str
    context: Json
    ref: Json
    limit: int
    offset: int
    script: CompletionScript | None


class Answer(NamedTuple):
    """Some values; how many there are in all, if that is known; and where the next ones begin, if there are more."""

    values: list[str]
    total: int | None
    next_offset: int | None


def page_of(values: list[str], request: CompletionRequest) -> Answer:
    """The part of all values that was asked for."""
    end = request.offset + request.limit
    return Answer(values[request.offset : end], len(values), end if end < len(values) else None)


def script_for(call: Call, name: str, item: Item | None) -> CompletionScript | None:
    """The script that answers for this item; None if there is none."""
    registered = call.services.catalog.completions().get(name)
    if registered is not None:
        return registered
    place = _place_of(call, item)
    if place is None:
        return None
    directory, file_name = os.path.split(place)
    if metadata.is_description(file_name):
        owners = [metadata.described_stem(file_name)]
    else:
        owners = [file_name, metadata.stem_of(file_name)]
    for owner in owners:
        for suffix in metadata.COMPLETION_SUFFIXES:
            path = os.path.join(directory, owner + suffix)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return CompletionScript(path)
    return None


def suggested(call: Call, request: CompletionRequest) -> Answer:
    """What the script of the request says. Raises Denied for one that others could have changed."""
    assert request.script is not None
    services = call.services
    path, own_secs = request.script
    if not os.path.exists(path):
        raise InternalError(f"Completion '{request.name}' could not be started: its script does not exist.")
    secs = allowed_secs(call, own_secs or services.settings.resource_timeout_secs)
    command = [path] if os.access(path, os.X_OK) else ["bash", path]
    script = Script(f"Completion '{request.name}'", path, command, services.project.ground(_home_of(call, path)))
    with ScriptFiles(call) as files:
        variables = {**_variables(call, request), "MCPBASH_STATE_DIR": files.directory.path}
        if call.auth_json:
            variables[AUTH_VARIABLE] = call.auth_json
        env = services.provider_environment.for_run("", variables)
        run = ScriptRun(script, env, Deadline(secs), Limits.of(services.settings), call.serial, unheard)
        outcome = run_script(services.runner, run)
        if call.run is not None:
            call.run.note_end(outcome)
    text = b"".join(output_or_error(script.label, outcome, secs)).decode("utf-8", "replace").strip()
    try:
        return _printed(jsontext.loads(text) if text else [], request)
    except ValueError as error:
        warning = f"{script.label} printed no JSON, so there are no suggestions: {error}"
        journal.warning("%s", warning)
        call.log("warning", "mcp.completion", warning)
        return page_of([], request)


def _place_of(call: Call, item: Item | None) -> str | None:
    """The file that stands for the item: its own, or the description of one that has none."""
    if item is None or item.path is not None:
        return None if item is None else item.path
    if not metadata.is_description(item.relative_path):
        return None
    project = call.services.project
    return os.path.join(project.prompts_dir if isinstance(item, Prompt) else project.resources_dir, item.relative_path)


def _home_of(call: Call, path: str) -> str:
    """The directory of the project that the script must not lead out of. Some may lie elsewhere by a setting."""
    project = call.services.project
    return next((each for each in (project.prompts_dir, project.resources_dir) if is_within(path, each)), project.root)


def _variables(call: Call, request: CompletionRequest) -> dict[str, str]:
    asked = encoded(
        {
            "query": request.typed,
            "prefix": request.typed,
            "argument": {"name": request.argument, "value": request.typed},
            "context": request.context,
            "ref": request.ref,
        },
        "context",
    )
    if len(asked) > MAX_REQUEST_BYTES:
        raise InvalidParams(f"The question is too long: it has more than {MAX_REQUEST_BYTES} bytes.")
    return {
        "MCP_COMPLETION_NAME": request.name,
        "MCP_COMPLETION_ARGS_JSON": asked.decode("ascii"),
        "MCP_COMPLETION_ARGS_HASH": jsontext.digest_of_chunks([asked]),
        "MCP_COMPLETION_LIMIT": str(request.limit),
        "MCP_COMPLETION_OFFSET": str(request.offset),
        **_about_the_item(request.item),
        **tracing.variables(call.params.get("_meta") or {}),
    }


def _about_the_item(item: Item | None) -> dict[str, str]:
    if item is None:
        return {}
    kind = "PROMPT" if isinstance(item, Prompt) else "RESOURCE"
    about = {
        f"MCP_{kind}_REL_PATH": item.relative_path,
        f"MCP_{kind}_PATH": item.path or "",
        **described(f"MCP_{kind}_METADATA", item.registry_entry),
    }
    if isinstance(item, Prompt):
        return about
    uri = item.uri if isinstance(item, Resource) else item.template.text
    return {**about, "MCP_RESOURCE_URI": uri, "MCP_RESOURCE_PROVIDER": item.provider}


def _printed(value: Any, request: CompletionRequest) -> Answer:
    """What a script suggests: an array of strings, or `{suggestions, hasMore, next, total}`."""
    suggestions = value.get("suggestions", value.get("values", [])) if isinstance(value, dict) else value
    if not isinstance(suggestions, list) or not all(isinstance(each, str) for each in suggestions):
        raise InternalError("Completion provider emitted invalid JSON: an array of strings is wanted")
    if isinstance(value, list) and len(suggestions) > request.limit:
        return page_of(suggestions, request)  # more than it was asked for: it prints everything each time
    details = value if isinstance(value, dict) else {}
    values = suggestions[: request.limit]
    end = request.offset + len(values)
    following, counted = details.get("next"), details.get("total")
    implied = type(following) is int and details.get("hasMore") is None  # many print `next` on the last page, too
    says_more = details.get("hasMore") or details.get("nextCursor") or details.get("cursor") or implied
    has_more = bool(says_more) or len(suggestions) > len(values)
    total = counted if type(counted) is int and counted >= end else None if has_more else end
    if not has_more:
        return Answer(values, total, None)
    # A page that does not lie behind this one would send the client round in circles.
    return Answer(values, total, following if type(following) is int and following > request.offset else end)
