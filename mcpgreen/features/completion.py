"""`completion/complete`: suggest values for an argument, from a script or from the argument's schema.

A script is registered under the name of the item, or lies next to it: `NAME.completion`, with any suffix. The
registered one comes first. It gets the request through its environment, and prints an array of strings or an object
that also says what follows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.manual.items import CompletionScript
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features.call import Call, Route
from mcpgreen.features.scripts import ScriptFiles, allowed_secs, as_text, encoded, output_or_error
from mcpgreen.protocol import pagination
from mcpgreen.running.processes.run import Deadline, Limits, Script, ScriptRun, unheard
from mcpgreen.running.runner import run_script
from mcpgreen.running.scripts.environment import AUTH_VARIABLE, described, trace_variables
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import MAX_URI_CHARS, is_within

MAX_VALUES = 100
MAX_TYPED_CHARS = 65_536
COLLECTION = "completion"
MAX_REQUEST_BYTES = 65_536  # it has to fit into one variable

Item = Prompt | Resource | ResourceTemplate
# Some values, how many there are in all (None if unknown), and where the next page begins (None: this is the last one).
Answer = tuple[list[str], "int | None", "int | None"]


class CompletionRequest(NamedTuple):
    """The argument of an item to complete, and what has been typed of it."""

    name: str
    item: Item | None  # None if only a registered script has this name
    argument: str
    typed: str
    context: Json
    ref: Json
    limit: int
    offset: int
    script: CompletionScript | None


def complete(call: Call, request: CompletionRequest) -> Json:
    if request.script is not None:
        values, total, next_offset = _run_completion(call, request)
    else:
        typed = request.typed.strip().lower()
        known = [each for each in _known_values(request) if each.lower().startswith(typed)]
        values, total, next_offset = _page_of(known, request)
    completion: Json = {"values": values, "hasMore": next_offset is not None}
    if total is not None:
        completion["total"] = total
    if next_offset is not None:
        scope = _cursor_scope(request.name, request.argument)
        completion["nextCursor"] = pagination.encode(COLLECTION, next_offset, scope, "")
    return {"completion": completion}


def _request(call: Call) -> CompletionRequest:
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or not isinstance(ref.get("type"), str):
        raise InvalidParams("Completion ref is required")
    name, item = _referenced(call, ref)
    if not isinstance(argument, dict) or not isinstance(argument.get("name"), str) or not argument["name"]:
        raise InvalidParams("Completion argument name is required")
    typed = argument.get("value", "")
    if not isinstance(typed, str):
        raise InvalidParams("argument.value must be a string.")
    if len(typed) > MAX_TYPED_CHARS:
        raise InvalidParams(f"argument.value may have at most {MAX_TYPED_CHARS} characters.")
    _require_known_argument(item, argument["name"])
    scope = _cursor_scope(name, argument["name"])
    return CompletionRequest(
        name=name,
        item=item,
        argument=argument["name"],
        typed=typed,
        context=_context(call.params.get("context")),
        ref=ref,
        limit=pagination.page_length(call.params.get("limit"), MAX_VALUES),
        offset=pagination.offset_in(call.params.get("cursor"), COLLECTION, scope),
        script=_script_for(call, name, item),
    )


def _context(given: object) -> Json:
    """Return the client's context; it always has `arguments`, so that scripts need not check."""
    context = {} if given is None else given
    if not isinstance(context, dict):
        raise InvalidParams("context must be an object.")
    if context.get("arguments") is None:
        return {**context, "arguments": {}}
    if not isinstance(context["arguments"], dict):
        raise InvalidParams("context.arguments must be an object.")
    return context


def _referenced(call: Call, ref: Json) -> tuple[str, Item | None]:
    """Return the name under which completions are registered, and the item."""
    services = call.services
    key = {"ref/prompt": "name", "ref/resource": "uri"}.get(ref["type"])
    value = ref.get(key) if key else None
    if not isinstance(value, str) or not value:
        raise InvalidParams("Completion ref is invalid")
    if len(value) > MAX_URI_CHARS:
        raise InvalidParams(f"Completion ref is invalid: it is longer than {MAX_URI_CHARS} characters")
    if key == "name":
        item: Item | None = services.catalog.snapshot("prompts").by_name.get(value)
        name = value
    else:
        item = _resource_at(call, value)
        name = item.name if item is not None else value
    if item is None and name not in services.catalog.completions():
        what = "Prompt" if key == "name" else "Resource or template"
        raise InvalidParams(f"{what} '{value}' not found")
    if isinstance(item, Prompt):
        call.require_scopes(item.scopes)
    return name, item


def _resource_at(call: Call, uri: str) -> Resource | ResourceTemplate | None:
    """Return the template of this text, else the resource with this URI, else a template that fits it."""
    templates = call.services.catalog.snapshot("resourceTemplates").items
    resources = call.services.catalog.snapshot("resources").items
    candidates = chain(
        (each for each in templates if each.template.text == uri),
        (each for each in resources if each.uri == uri),
        (each for each in templates if each.template.match(uri) is not None),
    )
    return next(candidates, None)


def _require_known_argument(item: Item | None, argument: str) -> None:
    if isinstance(item, Prompt):
        known: Sequence[str] = [each["name"] for each in item.definition.get("arguments", ())]
    elif isinstance(item, ResourceTemplate):
        known = item.template.variables
    else:
        return
    if known and argument not in known:
        raise InvalidParams(f"'{item.name}' has no argument '{argument}'; it has {', '.join(known)}.")


def _known_values(request: CompletionRequest) -> list[str]:
    """Return the values that the schema of the argument lists."""
    item = request.item
    schemas = item.schemas if isinstance(item, Prompt) else getattr(item, "arguments", {})
    schema = schemas.get(request.argument)
    if not isinstance(schema, dict):
        return []
    for source in (schema, schema.get("items")):
        for key in ("enum", "examples"):
            values = source.get(key) if isinstance(source, dict) else None
            if isinstance(values, list):
                # Other values could not be given as an argument.
                fit = [each for each in values if isinstance(each, (str, bool, int, float))]
                return list(dict.fromkeys(map(as_text, fit)))
    return []


def _cursor_scope(name: str, argument: str) -> str:
    """A cursor is good for the same argument; the typed text may have changed meanwhile."""
    return jsontext.digest([name, argument])


def _page_of(values: list[str], request: CompletionRequest) -> Answer:
    end = request.offset + request.limit
    return values[request.offset : end], len(values), end if end < len(values) else None


def _script_for(call: Call, name: str, item: Item | None) -> CompletionScript | None:
    """Return the script that answers for this item; None if there is none."""
    registered = call.services.catalog.completions().get(name)
    if registered is not None:
        return registered
    if item is None or (item.path is None and not metadata.is_description(item.relative_path)):
        return None
    project = call.services.project
    home = project.prompts_dir if isinstance(item, Prompt) else project.resources_dir
    for path in metadata.completions_beside(item.path or os.path.join(home, item.relative_path)):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return CompletionScript(path)
    return None


def _run_completion(call: Call, request: CompletionRequest) -> Answer:
    """Run the script of the request. Raises Denied if other users could have changed the script."""
    assert request.script is not None
    services = call.services
    path, own_secs = request.script
    if not os.path.exists(path):
        raise InternalError(f"Completion '{request.name}' could not be started: its script does not exist.")
    secs = allowed_secs(call, own_secs or services.settings.resource_timeout_secs)
    command = [path] if os.access(path, os.X_OK) else ["bash", path]
    # The directory that the script must not lead out of. The settings may place prompts and resources elsewhere.
    project = services.project
    home = next((each for each in (project.prompts_dir, project.resources_dir) if is_within(path, each)), project.root)
    script = Script(f"Completion '{request.name}'", path, command, project.ground(home))
    with ScriptFiles(call) as files:
        variables = {**_variables(call, request), "MCPBASH_STATE_DIR": files.directory.path}
        if call.auth_json:
            variables[AUTH_VARIABLE] = call.auth_json
        env = services.provider_environment.for_run("", variables)
        limits, owner = Limits.of(services.settings), call.stream.owner
        run = ScriptRun(script, env, Deadline(secs), limits, call.serial, unheard, owner)
        outcome = run_script(services.runner, run)
        if call.run is not None:
            call.run.note_end(outcome)
    text = b"".join(output_or_error(call, script.label, outcome, secs)).decode("utf-8", "replace").strip()
    try:
        return _printed(jsontext.loads(text) if text else [], request)
    except ValueError as error:
        warning = f"{script.label} did not print JSON, so there are no suggestions: {error}"
        journal.warning("%s", warning)
        call.log("warning", "mcp.completion", warning)
        return _page_of([], request)


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
        raise InvalidParams(f"The completion request is longer than {MAX_REQUEST_BYTES} bytes.")
    return {
        "MCP_COMPLETION_NAME": request.name,
        "MCP_COMPLETION_ARGS_JSON": asked.decode("ascii"),
        "MCP_COMPLETION_ARGS_HASH": jsontext.digest_of_chunks([asked]),
        "MCP_COMPLETION_LIMIT": str(request.limit),
        "MCP_COMPLETION_OFFSET": str(request.offset),
        **_about_the_item(request.item),
        **trace_variables(call.params.get("_meta") or {}),
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


def _printed(value: object, request: CompletionRequest) -> Answer:
    """Return the answer that a script has printed: an array of strings, or `{suggestions, hasMore, next, total}`."""
    suggestions = value.get("suggestions", value.get("values", [])) if isinstance(value, dict) else value
    if not isinstance(suggestions, list) or not all(isinstance(each, str) for each in suggestions):
        raise InternalError("Completion provider emitted invalid JSON: expected an array of strings")
    if isinstance(value, list) and len(suggestions) > request.limit:
        return _page_of(suggestions, request)  # more than the limit: it prints everything each time
    details = value if isinstance(value, dict) else {}
    values = suggestions[: request.limit]
    end = request.offset + len(values)
    following, counted = details.get("next"), details.get("total")
    implied = type(following) is int and details.get("hasMore") is None  # many print `next` on the last page, too
    says_more = details.get("hasMore") or details.get("nextCursor") or details.get("cursor") or implied
    has_more = bool(says_more) or len(suggestions) > len(values)
    total = counted if type(counted) is int and counted >= end else None if has_more else end
    if not has_more:
        return values, total, None
    # If `next` were not after this page, the client would read the same pages forever.
    return values, total, following if type(following) is int and following > request.offset else end


COMPLETE = Route(_request, complete, needs_process=lambda call, request: request.script is not None)
