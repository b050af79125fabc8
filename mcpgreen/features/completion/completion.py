"""`completion/complete`: what could follow, from a script, from the schema of the argument, or made up.

In this order: a registered script, a script beside the prompt or template, the values that the schema of the argument
names, and at last a few variations of what was typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.features.completion.scripts import Question, ask, page_of, script_for
from mcpgreen.protocol import pagination
from mcpgreen.text import jsontext
from mcpgreen.text.uris import MAX_URI_CHARS

Json = dict[str, Any]

MAX_VALUES = 100
MAX_TYPED_CHARS = 65_536
COLLECTION = "completion"


def runs_script(call: Call) -> bool:
    call.target = question = _question(call)
    return question.script is not None


def complete(call: Call) -> Json:
    question: Question = call.target
    if question.script is not None:
        answer = ask(call, question)
    else:
        known = _known_values(question)
        matching = _variations(question) if known is None else [each for each in known if _fits(each, question.typed)]
        answer = page_of(matching, question)
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
    if len(typed) > MAX_TYPED_CHARS:
        raise InvalidParams(f"argument.value is too long: it may have {MAX_TYPED_CHARS} characters.")
    _require_known_argument(item, argument["name"])
    question = Question(
        name=name,
        item=item,
        argument=argument["name"],
        typed=typed,
        context=_context(call.params.get("context")),
        ref=ref,
        limit=pagination.within(call.params.get("limit"), MAX_VALUES),
        offset=0,
        script=script_for(call, name, item),
    )
    cursor = call.params.get("cursor")
    if cursor is None or cursor == "":
        return question
    offset = pagination.offset_in(cursor, COLLECTION, _mark(question))
    if offset < 0:
        raise InvalidParams("This cursor points outside the list; start again without a cursor.")
    return question._replace(offset=offset)


def _context(given: Any) -> Json:
    """What the client says about the other arguments, which scripts find there in any case."""
    context = {} if given is None else given
    if not isinstance(context, dict):
        raise InvalidParams("context must be an object.")
    if context.get("arguments") is None:
        return {**context, "arguments": {}}
    if not isinstance(context["arguments"], dict):
        raise InvalidParams("context.arguments must be an object.")
    return context


def _referenced(call: Call, ref: Json) -> tuple[str, Any]:
    """The name under which completions are registered, and the item itself."""
    services = call.services
    key = {"ref/prompt": "name", "ref/resource": "uri"}.get(ref["type"])
    value = ref.get(key) if key else None
    if not isinstance(value, str) or not value:
        raise InvalidParams("Completion ref is invalid")
    if len(value) > MAX_URI_CHARS:
        raise InvalidParams(f"Completion ref is invalid: it is longer than {MAX_URI_CHARS} characters")
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
                # What cannot be given as an argument is not offered either.
                fit = [each for each in values if isinstance(each, (str, bool, int, float))]
                return list(dict.fromkeys(map(_as_text, fit)))
    return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value).decode("ascii")


def _variations(question: Question) -> list[str]:
    base = question.typed.strip() or question.name or "suggestion"
    return [base, f"{base} snippet", f"{base} example"]


def _fits(value: str, typed: str) -> bool:
    return value.lower().startswith(typed.strip().lower())


def _mark(question: Question) -> str:
    """A cursor goes on with the same argument; what is typed may have changed meanwhile."""
    return jsontext.digest([question.name, question.argument])
