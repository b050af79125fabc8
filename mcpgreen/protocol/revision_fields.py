"""Adapt results and errors to a client's revision.

Handlers speak the newest dialect. This module removes fields that a revision does not have, converts content blocks
that it does not have (`content.CONTENT_TYPES`), and adds the members that every stateless result must have.

Rule: a difference between revisions is a row in `FIELD_NEEDS` or a feature test here, nowhere else.
"""

from __future__ import annotations

from mcpgreen.errors import RpcError
from mcpgreen.journal import cut
from mcpgreen.protocol.content import CONTENT_TYPES
from mcpgreen.protocol.revisions import Feature, Revision
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
# Bounds of an error, which may come from a script and has no other limit.
MAX_MESSAGE_CHARS = 16_384
MAX_DATA_CHARS = 65_536
MAX_DATA_BYTES = 262_144
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
RELATED_TASK = "io.modelcontextprotocol/related-task"

# Fields that only some revisions have. Every revision has the fields that are not named here.
FIELD_NEEDS: dict[str, dict[str, str]] = {
    "implementation": {
        "title": Feature.TITLES,
        "description": Feature.ICONS,
        "websiteUrl": Feature.ICONS,
        "icons": Feature.ICONS,
    },
    "tool": {
        "title": Feature.TITLES,
        "annotations": Feature.TOOL_ANNOTATIONS,
        "outputSchema": Feature.STRUCTURED_CONTENT,
        "icons": Feature.ICONS,
        "_meta": Feature.DEFINITION_META,
        "execution": Feature.TASKS,
    },
    "resource": {"title": Feature.TITLES, "icons": Feature.ICONS, "_meta": Feature.DEFINITION_META},
    "prompt": {"title": Feature.TITLES, "icons": Feature.ICONS, "_meta": Feature.DEFINITION_META},
    "prompt argument": {"title": Feature.TITLES},
    "content": {"_meta": Feature.DEFINITION_META, "icons": Feature.ICONS, "title": Feature.TITLES},
    "contents": {"_meta": Feature.DEFINITION_META},
    "annotations": {"lastModified": Feature.LAST_MODIFIED},
    "call result": {"structuredContent": Feature.STRUCTURED_CONTENT},
    "progress": {"message": Feature.PROGRESS_MESSAGE},
    "result": {"ttlMs": Feature.CACHE_HINTS, "cacheScope": Feature.CACHE_HINTS, "resultType": Feature.RESULT_TYPE},
}


def fit_fields(kind: str, value: Json, revision: Revision) -> Json:
    """Return a copy without the fields that this revision does not have."""
    needs = FIELD_NEEDS[kind]
    return {name: field for name, field in value.items() if name not in needs or needs[name] in revision.features}


def fit_tool(definition: Json, revision: Revision) -> Json:
    tool = fit_fields("tool", definition, revision)
    if "title" in definition and "title" not in tool and Feature.TOOL_ANNOTATIONS in revision.features:
        tool["annotations"] = {"title": definition["title"], **tool.get("annotations", {})}
    if "outputSchema" in tool and Feature.ANY_OUTPUT_SCHEMA not in revision.features:
        schema = tool["outputSchema"]
        # Clients of the handshake era reject the whole list because of one other root.
        if type(schema) is not dict or schema.get("type") != "object":
            del tool["outputSchema"]
    if Feature.BOOLEAN_PROPERTY_SCHEMAS not in revision.features:
        tool["inputSchema"] = _without_boolean_properties(tool["inputSchema"])
    return tool


def fit_resource(definition: Json, revision: Revision) -> Json:
    """Adapt a resource or a resource template."""
    resource = fit_fields("resource", definition, revision)
    if "annotations" in resource:
        resource["annotations"] = fit_fields("annotations", resource["annotations"], revision)
    return resource


def fit_prompt(definition: Json, revision: Revision) -> Json:
    prompt = fit_fields("prompt", definition, revision)
    if "arguments" in prompt:
        prompt["arguments"] = [fit_fields("prompt argument", each, revision) for each in prompt["arguments"]]
    return prompt


def fit_contents(result: Json, revision: Revision) -> Json:
    """Adapt the result of reading a resource."""
    return {**result, "contents": [fit_fields("contents", each, revision) for each in result["contents"]]}


def fit_prompt_result(result: Json, revision: Revision) -> Json:
    messages = [{**each, "content": fit_block(each["content"], revision)} for each in result["messages"]]
    return {**result, "messages": messages}


def fit_call_result(result: Json, revision: Revision) -> Json:
    fitted = fit_fields("call result", result, revision)
    fitted["content"] = [fit_block(block, revision) for block in result["content"]]
    if "structuredContent" not in result:
        return fitted
    value = result["structuredContent"]
    if type(value) is not dict and Feature.ANY_STRUCTURED_VALUE not in revision.features:
        fitted.pop("structuredContent", None)
    if "structuredContent" not in fitted and not fitted["content"]:
        # Usually a text block says the same; here it was all that the tool said.
        fitted["content"] = [{"type": "text", "text": jsontext.dumps(value).decode("ascii")}]
    return fitted


def fit_block(block: Json, revision: Revision) -> Json:
    """Return a content block in a form that this revision has."""
    row = CONTENT_TYPES[block["type"]]
    if row.since is not None and row.since not in revision.features:
        block = row.for_older(block)
    fitted = fit_fields("content", block, revision)
    if type(fitted.get("annotations")) is dict:
        fitted["annotations"] = fit_fields("annotations", fitted["annotations"], revision)
    if type(fitted.get("resource")) is dict:
        fitted["resource"] = fit_fields("contents", fitted["resource"], revision)
    return fitted


def finish(result: Json, revision: Revision, server_info: Json) -> Json:
    """Finish a result: add what the stateless era demands, or remove what the handshake era does not have.

    A handler sets `ttlMs` on a result that the client may cache, and a task has one of its own. The cache is always
    private to this client.
    """
    fitted = fit_fields("result", result, revision)
    if Feature.RESULT_TYPE not in revision.features:
        return fitted
    stamped = {"resultType": "complete", **fitted}
    if "ttlMs" in stamped and "taskId" not in stamped:
        stamped.setdefault("cacheScope", "private")
    stamped["_meta"] = {**result.get("_meta", {}), SERVER_INFO: fit_fields("implementation", server_info, revision)}
    return stamped


def error_object(error: RpcError, revision: Revision | None = None) -> Json:
    """Return the `error` member for an exception. A script's own code is replaced if the revision reserves it."""
    code = error.code
    if revision is not None and Feature.RESERVED_ERROR_CODES in revision.features:
        if error.stateless_code is not None:
            code = error.stateless_code
        elif _is_reserved(code, error):
            code = RpcError.code
    body: Json = {"code": code, "message": cut(error.message, MAX_MESSAGE_CHARS)}
    if error.data is not None:
        body["data"] = _bounded(error.data)
    return body


def _bounded(data: object) -> object:
    """Return the data of an error, cut or left out if it is too long."""
    if isinstance(data, str):
        return cut(data, MAX_DATA_CHARS)
    try:
        is_short = len(jsontext.dumps(data)) <= MAX_DATA_BYTES
    except ValueError:
        return "left out: it cannot be written as JSON"
    return data if is_short else f"left out: it has more than {MAX_DATA_BYTES} bytes"


def _is_reserved(code: int, error: RpcError) -> bool:
    """Tell whether only the protocol itself may use this code in the stateless era."""
    chosen_by_us = type(error).code == code
    return (code in (-32002, -32042) or -32099 <= code <= -32020) and not chosen_by_us


def _without_boolean_properties(schema: Json) -> Json:
    properties = schema.get("properties")
    if type(properties) is not dict or not any(type(value) is bool for value in properties.values()):
        return schema
    as_objects: dict[bool, Json] = {True: {}, False: {"not": {}}}
    return {
        **schema,
        "properties": {name: as_objects[value] if type(value) is bool else value for name, value in properties.items()},
    }


def about_task(task_id: str) -> Json:
    """Return the `_meta` of messages about a task in the handshake era."""
    return {RELATED_TASK: {"taskId": task_id}}
