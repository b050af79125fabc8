"""`completion/complete`: what could follow, from a script, from the schema of the argument, or made up.

A registered script comes before one beside the prompt or template.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import Resource, ResourceTemplate
from mcpgreen.errors import InvalidParams
from mcpgreen.features.call import Call
from mcpgreen.features.completion.scripts import CompletionRequest, page_of, script_for, suggested
from mcpgreen.features.scripts import as_text
from mcpgreen.protocol import pagination
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import MAX_URI_CHARS

MAX_VALUES = 100
MAX_TYPED_CHARS = 65_536
COLLECTION = "completion"


def runs_script(call: Call) -> bool:
    call.target = request = _request(call)
    return request.script is not None


def complete(call: Call) -> Json:
    request: CompletionRequest = call.target
    if request.script is not None:
        answer = suggested(call, request)
    else:
        known, typed = _known_values(request), request.typed.strip()
        if known is None:
            base = typed or request.name or "suggestion"
            matching = [base, f"{base} snippet", f"{base} example"]
        else:
            matching = [each for each in known if each.lower().startswith(typed.lower())]
        answer = page_of(matching, request)
    completion: Json = {"values": answer.values, "hasMore": answer.next_offset is not None}
    if answer.total is not None:
        completion["total"] = answer.total
    if answer.next_offset is not None:
        scope = _cursor_scope(request.name, request.argument)
        completion["nextCursor"] = pagination.encode(COLLECTION, answer.next_offset, scope, "")
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
        raise InvalidParams(f"argument.value is too long: it may have {MAX_TYPED_CHARS} characters.")
    _require_known_argument(item, argument["name"])
    cursor = call.params.get("cursor")
    scope = _cursor_scope(name, argument["name"])
    offset = 0 if pagination.is_first(cursor) else pagination.offset_in(cursor, COLLECTION, scope)
    if offset < 0:
        raise InvalidParams("This cursor points outside the list; start again without a cursor.")
    return CompletionRequest(
        name=name,
        item=item,
        argument=argument["name"],
        typed=typed,
        context=_context(call.params.get("context")),
        ref=ref,
        limit=pagination.within(call.params.get("limit"), MAX_VALUES),
        offset=offset,
        script=script_for(call, name, item),
    )


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
    if isinstance(item, Prompt):
        call.require_scopes(item.scopes)
    return name, item


def _resource_at(call: Call, uri: str) -> Resource | ResourceTemplate | None:
    """The template of this text, else the resource with this URI, else a template that fits it."""
    templates = call.services.snapshot("resourceTemplates").items
    resources = call.services.catalog.snapshot("resources").items
    candidates = chain(
        (each for each in templates if each.template.text == uri),
        (each for each in resources if each.uri == uri),
        (each for each in templates if each.template.match(uri) is not None),
    )
    return next(candidates, None)


def _require_known_argument(item: Any, argument: str) -> None:
    if isinstance(item, Prompt):
        known: Sequence[str] = [each["name"] for each in item.definition.get("arguments", ())]
    elif isinstance(item, ResourceTemplate):
        known = item.template.variables
    else:
        return
    if known and argument not in known:
        raise InvalidParams(f"'{item.name}' has no argument '{argument}'; it has {', '.join(known)}.")


def _known_values(request: CompletionRequest) -> list[str] | None:
    """What the schema of the argument names; None if it names nothing."""
    item = request.item
    schemas = item.schemas if isinstance(item, Prompt) else getattr(item, "arguments", {})
    schema = schemas.get(request.argument)
    if not isinstance(schema, dict):
        return None
    for source in (schema, schema.get("items")):
        for key in ("enum", "examples"):
            values = source.get(key) if isinstance(source, dict) else None
            if isinstance(values, list):
                # What cannot be given as an argument is not offered either.
                fit = [each for each in values if isinstance(each, (str, bool, int, float))]
                return list(dict.fromkeys(map(as_text, fit)))
    return None


def _cursor_scope(name: str, argument: str) -> str:
    """A cursor goes on with the same argument; what is typed may have changed meanwhile."""
    return jsontext.digest([name, argument])
