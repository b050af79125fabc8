"""`completion/complete`: what could follow, from a script, from the schema of the argument, or made up.

In this order: a registered script, a script beside the prompt or template, the values that the schema of the argument
names, and at last a few variations of what was typed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from mcpgreen import jsontext
from mcpgreen.catalog.metadata import COMPLETION_SUFFIXES, stem_of
from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.errors import InternalError, InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.features.scripts import output_or_error
from mcpgreen.protocol import pagination
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.starting import Script, run_script

Json = dict[str, Any]

MAX_VALUES = 100
COLLECTION = "completion"


class Question(NamedTuple):
    """What is to be completed: for whom, which argument, and how much of it is typed."""

    name: str
    item: Prompt | Resource | ResourceTemplate | None  # None: only a registered script has this name
    argument: str
    typed: str
    context: Json
    ref: Json
    limit: int
    offset: int
    script: list[str] | None


class Answer(NamedTuple):
    """Some values; how many there are in all, if that is known; and where the next ones begin, if there are more."""

    values: list[str]
    total: int | None
    next_offset: int | None


def runs_script(call: Call) -> bool:
    call.target = question = _question(call)
    return question.script is not None


def complete(call: Call) -> Json:
    question: Question = call.target
    if question.script is not None:
        answer = _from_script(call, question)
    else:
        known = _known_values(question)
        matching = _variations(question) if known is None else [each for each in known if _fits(each, question.typed)]
        answer = _cut(matching, question)
    completion: Json = {"values": answer.values, "hasMore": answer.next_offset is not None}
    if answer.total is not None:
        completion["total"] = answer.total
    if answer.next_offset is not None:
        completion["nextCursor"] = pagination.encode(COLLECTION, answer.next_offset, _mark(question), "")
    return {"completion": completion}


def _question(call: Call) -> Question:
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or not isinstance(ref.get("type"), str):
        raise InvalidParams("Completion ref is required")
    name, item = _referenced(call, ref)
    if not isinstance(argument, dict) or not isinstance(argument.get("name"), str) or not argument["name"]:
        raise InvalidParams("Completion argument name is required")
    typed = argument.get("value", "")
    if not isinstance(typed, str):
        raise InvalidParams("argument.value must be a string.")
    context = call.params.get("context")
    if context is not None and not isinstance(context, dict):
        raise InvalidParams("context must be an object.")
    _require_known_argument(item, argument["name"])
    question = Question(
        name=name,
        item=item,
        argument=argument["name"],
        typed=typed,
        context=context or {},
        ref=ref,
        limit=_limit(call.params.get("limit")),
        offset=0,
        script=_script_for(call, name, item),
    )
    cursor = call.params.get("cursor")
    if cursor is None:
        return question
    return question._replace(offset=pagination.offset_in(cursor, COLLECTION, _mark(question)))


def _limit(wanted: Any) -> int:
    return min(wanted, MAX_VALUES) if type(wanted) is int and wanted > 0 else MAX_VALUES


def _referenced(call: Call, ref: Json) -> tuple[str, Any]:
    """The name under which completions are registered, and the item itself."""
    services = call.services
    key = {"ref/prompt": "name", "ref/resource": "uri"}.get(ref["type"])
    value = ref.get(key) if key else None
    if not isinstance(value, str) or not value:
        raise InvalidParams("Completion ref is invalid")
    if key == "name":
        item: Any = services.snapshot("prompts").by_name.get(value)
        name = value
    else:
        item = _resource_at(call, value)
        name = item.name if item is not None else value
    if item is None and name not in services.catalog.completions():
        what = "Prompt" if key == "name" else "Resource or template"
        raise InvalidParams(f"{what} '{value}' not found")
    return name, item


def _resource_at(call: Call, uri: str) -> Resource | ResourceTemplate | None:
    """The template of this text, else the resource at this address, else a template that fits it."""
    templates = call.services.snapshot("resourceTemplates").items
    for template in templates:
        if template.template.text == uri:
            return template  # type: ignore[no-any-return]
    for resource in call.services.catalog.snapshot("resources").items:
        if resource.uri == uri:
            return resource  # type: ignore[no-any-return]
    return next((template for template in templates if template.template.match(uri) is not None), None)


def _require_known_argument(item: Any, argument: str) -> None:
    if isinstance(item, Prompt):
        known: Sequence[str] = [each["name"] for each in item.definition.get("arguments", ())]
    elif isinstance(item, ResourceTemplate):
        known = item.template.variables
    else:
        return
    if known and argument not in known:
        raise InvalidParams(f"'{item.name}' has no argument '{argument}'; it has {', '.join(known)}.")


def _script_for(call: Call, name: str, item: Any) -> list[str] | None:
    registered = call.services.catalog.completions().get(name)
    if registered is not None:
        return registered
    path = getattr(item, "path", None)
    if path is None:
        return None
    # A template is described by a file of its own; what it is called without the ending is meant.
    owners = (path, stem_of(path)) if not isinstance(item, ResourceTemplate) else (path.rpartition(".meta.")[0], path)
    for owner in owners:
        for suffix in COMPLETION_SUFFIXES:
            if os.path.isfile(owner + suffix) and os.access(owner + suffix, os.X_OK):
                return [owner + suffix]
    return None


def _from_script(call: Call, question: Question) -> Answer:
    assert question.script is not None
    services = call.services
    arguments = jsontext.dumps(
        {
            "query": question.typed,
            "prefix": question.typed,
            "argument": {"name": question.argument, "value": question.typed},
            "context": question.context,
            "ref": question.ref,
        }
    )
    variables = {
        "MCP_COMPLETION_NAME": question.name,
        "MCP_COMPLETION_ARGS_JSON": arguments.decode("ascii"),
        "MCP_COMPLETION_ARGS_HASH": jsontext.digest_of_chunks([arguments]),
        "MCP_COMPLETION_LIMIT": str(question.limit),
        "MCP_COMPLETION_OFFSET": str(question.offset),
        **_about_the_item(question.item),
    }
    secs: float = services.settings.resource_timeout_secs
    script = Script(f"Completion '{question.name}'", question.script[-1], question.script)
    outcome = run_script(
        services.runner,
        script,
        env=services.provider_environment().for_run("", variables),
        deadline=Deadline(secs),
        on_control=lambda chunk: None,
    )
    return _printed(b"".join(output_or_error(script.label, outcome, secs)), question)


def _about_the_item(item: Any) -> dict[str, str]:
    if isinstance(item, Prompt):
        metadata = jsontext.dumps(item.registry_entry).decode("ascii")
        return {
            "MCP_PROMPT_REL_PATH": item.relative_path,
            "MCP_PROMPT_PATH": item.path or "",
            "MCP_PROMPT_METADATA": metadata,
        }
    if item is None:
        return {}
    return {
        "MCP_RESOURCE_REL_PATH": item.relative_path,
        "MCP_RESOURCE_PATH": item.path or "",
        "MCP_RESOURCE_URI": item.uri if isinstance(item, Resource) else item.template.text,
        "MCP_RESOURCE_PROVIDER": item.provider,
        "MCP_RESOURCE_METADATA": jsontext.dumps(item.registry_entry).decode("ascii"),
    }


def _printed(output: bytes, question: Question) -> Answer:
    """What a script suggests: an array of strings, or `{suggestions, hasMore, next, total}`."""
    text = output.decode("utf-8", "replace").strip()
    try:
        value = jsontext.loads(text) if text else []
    except ValueError as error:
        raise InternalError(f"Completion provider emitted invalid JSON: {error}") from error
    details = value if isinstance(value, dict) else {}
    suggestions = details.get("suggestions", details.get("values", [])) if isinstance(value, dict) else value
    if not isinstance(suggestions, list) or not all(isinstance(each, str) for each in suggestions):
        raise InternalError("Completion provider emitted invalid JSON: an array of strings is wanted")
    values = suggestions[: question.limit]
    following = details.get("next")
    has_more = bool(details.get("hasMore")) or len(suggestions) > len(values) or type(following) is int
    end = question.offset + len(values)
    total = details.get("total")
    if type(total) is not int or total < 0:
        total = None if has_more else end
    if not has_more:
        return Answer(values, total, None)
    return Answer(values, total, following if type(following) is int and following >= 0 else end)


def _known_values(question: Question) -> list[str] | None:
    """What the schema of the argument names; None if it names nothing."""
    item = question.item
    schemas = item.schemas if isinstance(item, Prompt) else getattr(item, "arguments", {})
    schema = schemas.get(question.argument)
    if not isinstance(schema, dict):
        return None
    for source in (schema, schema.get("items")):
        for key in ("enum", "examples"):
            values = source.get(key) if isinstance(source, dict) else None
            if isinstance(values, list):
                return [each if isinstance(each, str) else jsontext.dumps(each).decode("ascii") for each in values]
    return None


def _variations(question: Question) -> list[str]:
    base = question.typed.strip() or question.name or "suggestion"
    return [base, f"{base} snippet", f"{base} example"]


def _fits(value: str, typed: str) -> bool:
    return value.lower().startswith(typed.strip().lower())


def _cut(values: list[str], question: Question) -> Answer:
    end = question.offset + question.limit
    return Answer(values[question.offset : end], len(values), end if end < len(values) else None)


def _mark(question: Question) -> str:
    """A cursor goes on with the same argument; what is typed may have changed meanwhile."""
    return jsontext.digest([question.name, question.argument])
