"""What messages of the three oldest revisions may hold, as JSON schemas built from one table of fields.

There is no published package of types for these revisions. Each record names its required and optional members; one
that came later is wrapped in `since`. Nothing else is allowed, at any level.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

Schema = dict[str, Any]

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18")
R2, R3 = REVISIONS[1:]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}
TOKEN: Schema = {"type": ["string", "integer"]}
# The cursor is an extension of ours, in every revision.
COMPLETION: Schema = {
    "type": "object",
    "required": ["values"],
    "properties": {
        "values": {"type": "array", "items": TEXT, "maxItems": 100},
        "total": {"type": "integer", "minimum": 0},
        "hasMore": FLAG,
        "nextCursor": TEXT,
    },
    "additionalProperties": False,
}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def problem(revision: str, what: str, value: Any) -> str | None:
    """What is wrong with the result of a method, or with the params of a notification or of a request of the server's;
    None when all is well."""
    validator = _validators(revision).get(what)
    if validator is None:
        return "does not exist"
    error = next(validator.iter_errors(value), None)
    return None if error is None else f"{error.json_path}: {error.message[:500]}"


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "required": sorted(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def array_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


@cache
def _validators(revision: str) -> dict[str, Draft202012Validator]:
    return {what: Draft202012Validator(schema) for what, schema in _shapes(revision).items()}


def _shapes(revision: str) -> dict[str, Schema]:
    def since(first: str, fields: dict[str, Schema]) -> dict[str, Schema]:
        return fields if REVISIONS.index(revision) >= REVISIONS.index(first) else {}

    meta = {"_meta": OBJECT}
    implementation = record({"name": TEXT, "version": TEXT}, since(R3, {"title": TEXT}))
    list_changes = record({}, {"listChanged": FLAG})
    capabilities = record(
        {},
        {
            "experimental": OBJECT,
            "logging": OBJECT,
            "tools": list_changes,
            "prompts": list_changes,
            "resources": record({}, {"listChanged": FLAG, "subscribe": FLAG}),
            **since(R2, {"completions": OBJECT}),
        },
    )
    return {
        "initialize": record(
            {"protocolVersion": {"const": revision}, "capabilities": capabilities, "serverInfo": implementation},
            {"instructions": TEXT, **meta},
        ),
        "tools/list": record({"tools": array_of(_tool(since))}, {"nextCursor": TEXT, **meta}),
        "tools/call": record(
            {"content": array_of(_content(since))},
            {"isError": FLAG, **since(R3, {"structuredContent": OBJECT}), **meta},
        ),
        "prompts/list": record({"prompts": array_of(_prompt(since))}, {"nextCursor": TEXT, **meta}),
        "prompts/get": record({"messages": array_of(_message(since))}, {"description": TEXT, **meta}),
        "completion/complete": record({"completion": COMPLETION}, meta),
        "resources/list": record({"resources": array_of(_resource(since, "uri"))}, {"nextCursor": TEXT, **meta}),
        "resources/templates/list": record(
            {"resourceTemplates": array_of(_resource(since, "uriTemplate"))}, {"nextCursor": TEXT, **meta}
        ),
        "resources/read": record({"contents": array_of(_contents(since))}, meta),
        "notifications/progress": record(
            {"progressToken": TOKEN, "progress": NUMBER}, {"total": NUMBER, **since(R2, {"message": TEXT}), **meta}
        ),
        "notifications/message": record({"level": {"enum": list(LEVELS)}, "data": ANYTHING}, {"logger": TEXT, **meta}),
        "notifications/tools/list_changed": record({}, meta),
        "notifications/prompts/list_changed": record({}, meta),
        "notifications/resources/list_changed": record({}, meta),
        "notifications/resources/updated": record({"uri": TEXT}, meta),
        "notifications/cancelled": record({"requestId": TOKEN}, {"reason": TEXT, **meta}),
        "roots/list": record({}, meta),
        "sampling/createMessage": _sample(since),
        **since(R3, {"elicitation/create": record({"message": TEXT, "requestedSchema": _form()}, meta)}),
        "resources/subscribe": record({}, meta),
        "resources/unsubscribe": record({}, meta),
    }


def _tool(since: Any) -> Schema:
    schema = {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"const": "object"},
            "properties": {"type": "object", "additionalProperties": OBJECT},
            "required": array_of(TEXT),
        },
    }
    hints = dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), FLAG)
    return record(
        {"name": TEXT, "inputSchema": schema},
        {
            "description": TEXT,
            **since(R2, {"annotations": record({}, {"title": TEXT, **hints})}),
            **since(R3, {"title": TEXT, "outputSchema": schema, "_meta": OBJECT}),
        },
    )


def _sample(since: Any) -> Schema:
    media = {"data": TEXT, "mimeType": TEXT}
    blocks = [
        record({"type": {"const": "text"}, "text": TEXT}),
        record({"type": {"const": "image"}, **media}),
        *([record({"type": {"const": "audio"}, **media})] if since(R2, {"audio": ANYTHING}) else []),
    ]
    message = record({"role": {"enum": ["user", "assistant"]}, "content": {"oneOf": blocks}})
    priorities = dict.fromkeys(("costPriority", "speedPriority", "intelligencePriority"), NUMBER)
    preferences = record({}, {"hints": array_of(record({}, {"name": TEXT})), **priorities})
    optional = {
        "modelPreferences": preferences,
        "systemPrompt": TEXT,
        "includeContext": {"enum": ["none", "thisServer", "allServers"]},
        "temperature": NUMBER,
        "stopSequences": array_of(TEXT),
        "metadata": OBJECT,
        "_meta": OBJECT,
    }
    return record({"messages": array_of(message), "maxTokens": {"type": "integer"}}, optional)


def _form() -> Schema:
    about = {"title": TEXT, "description": TEXT}
    whole: Schema = {"type": "integer"}
    formats: Schema = {"enum": ["email", "uri", "date", "date-time"]}
    text = record({"type": {"const": "string"}}, {**about, "minLength": whole, "maxLength": whole, "format": formats})
    number = record({"type": {"enum": ["number", "integer"]}}, {**about, "minimum": NUMBER, "maximum": NUMBER})
    flag = record({"type": {"const": "boolean"}}, {**about, "default": FLAG})
    choice = record({"type": {"const": "string"}, "enum": array_of(TEXT)}, {**about, "enumNames": array_of(TEXT)})
    fields = {"type": "object", "additionalProperties": {"oneOf": [text, number, flag, choice]}}
    return record({"type": {"const": "object"}, "properties": fields}, {"required": array_of(TEXT)})


def _prompt(since: Any) -> Schema:
    title = since(R3, {"title": TEXT})
    argument = record({"name": TEXT}, {"description": TEXT, "required": FLAG, **title})
    return record(
        {"name": TEXT},
        {"description": TEXT, "arguments": array_of(argument), **title, **since(R3, {"_meta": OBJECT})},
    )


def _message(since: Any) -> Schema:
    return record({"role": {"enum": ["user", "assistant"]}, "content": _content(since)})


def _annotations(since: Any) -> Schema:
    return record(
        {},
        {
            "audience": array_of({"enum": ["user", "assistant"]}),
            "priority": {"type": "number", "minimum": 0, "maximum": 1},
            **since(R3, {"lastModified": TEXT}),
        },
    )


def _resource(since: Any, address: str) -> Schema:
    return record(
        {"name": TEXT, address: TEXT},
        {
            "description": TEXT,
            "mimeType": TEXT,
            "annotations": _annotations(since),
            # The provider is an extension of ours, in every revision.
            **({"size": {"type": "integer", "minimum": 0}, "provider": TEXT} if address == "uri" else {}),
            **since(R3, {"title": TEXT, "_meta": OBJECT}),
        },
    )


def _contents(since: Any) -> Schema:
    optional = {"mimeType": TEXT, **since(R3, {"_meta": OBJECT})}
    return {"oneOf": [record({"uri": TEXT, each: TEXT}, optional) for each in ("text", "blob")]}


def _content(since: Any) -> Schema:
    annotations = _annotations(since)
    meta = since(R3, {"_meta": OBJECT})
    common = {"annotations": annotations, **meta}
    contents = _contents(since)
    media = {"data": TEXT, "mimeType": TEXT}
    blocks = {
        "text": record({"type": TEXT, "text": TEXT}, common),
        "image": record({"type": TEXT, **media}, common),
        "resource": record({"type": TEXT, "resource": contents}, common),
        **since(R2, {"audio": record({"type": TEXT, **media}, common)}),
        **since(
            R3,
            {
                "resource_link": record(
                    {"type": TEXT, "uri": TEXT, "name": TEXT},
                    {"title": TEXT, "description": TEXT, "mimeType": TEXT, "size": {"type": "integer"}, **common},
                )
            },
        ),
    }
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": sorted(blocks)}},
        "allOf": [{"if": {"properties": {"type": {"const": kind}}}, "then": schema} for kind, schema in blocks.items()],
    }
