"""Every message that a test receives is checked against its revision.

The two newest revisions are checked by the official types (the PyPI package `mcp-types`), the three older ones, for
which there are none, by the table in `old_shapes`. Official clients ignore members that they do not know; here a member
that the revision does not know is a fault, because another client may be stricter.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, get_args

from mcp_types import methods as official
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError

from tests.support import old_shapes, task_shapes

Json = dict[str, Any]

MODERN = "2026-07-28"
OFFICIAL = ("2025-11-25", MODERN)
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

ENVELOPES = (
    {"jsonrpc", "id", "result"},
    {"jsonrpc", "id", "error"},
    {"jsonrpc", "error"},
    {"jsonrpc", "method"},
    {"jsonrpc", "id", "method"},
)
EMPTY_RESULTS = ("ping", "logging/setLevel", "shutdown", "exit")
CACHED = ("resultType", "ttlMs", "cacheScope")
# Extensions have no official types: the member of each result.
OF_EXTENSIONS = {"skills/list": "skills", "skills/get": "skill", "resources/directory/read": "resources"}
MODERN_CODES = (-32020, -32021, -32022)
# Of MCP Apps, which clients of 2025-11-25 negotiate though only the next revision has a place for it.
EARLY_MEMBERS = ("/capabilities/extensions",)
# What clients of older servers look for: who provides a registered resource, and how a completion goes on.
OWN_MEMBERS = ("/resources/*/provider", "/completion/nextCursor", "/params/notifications/taskIds")  # of tasks
MAY_BE_NULL = ("structuredContent", "data")


class Invalid(AssertionError):
    """A message that the server should not have sent."""


def check(
    message: Any, *, revision: str | None, methods: Mapping[Any, str], modern: Collection[Any] = frozenset()
) -> None:
    """Raise Invalid for a message that its revision does not allow.

    `revision` is the one agreed by handshake, if any; `methods` are those of our requests by id; `modern` holds ids and
    progress tokens of requests that carried the stateless envelope, whose answers are checked as such.
    """
    _check_envelope(message)
    if "method" in message and "id" in message:
        _check_request(message, revision)
    elif "method" in message:
        params = message.get("params", {})
        is_modern = SUBSCRIPTION_ID in params.get("_meta", {}) or _is_in(modern, params.get("progressToken"))
        _check_notification(message, MODERN if is_modern else revision)
    elif "error" in message:
        _check_error(message["error"], is_modern=_is_in(modern, message.get("id")))
    else:
        is_modern = _is_in(modern, message["id"])
        _check_result(methods.get(message["id"]), message["result"], MODERN if is_modern else revision)


def _is_in(known: Collection[Any], value: Any) -> bool:
    """Membership by value and type: 1 and "1" and True are three different ids."""
    return any(type(each) is type(value) and each == value for each in known)


def _check_envelope(message: Any) -> None:
    _require(isinstance(message, dict), "a message must be an object", message)
    _require(message.get("jsonrpc") == "2.0", "jsonrpc must be 2.0", message)
    _require(message.keys() - {"params"} in ENVELOPES, "unknown or missing members", sorted(message))
    _require("params" not in message or "method" in message, "params in a response", message)
    _require(isinstance(message.get("params", {}), dict), "params must be an object", message)
    if "id" in message:
        _require(type(message["id"]) in (str, int), "id must be a string or an integer", message["id"])
    if "result" in message:
        _require(isinstance(message["result"], dict), "a result must be an object", message["result"])


def _check_error(error: Any, *, is_modern: bool) -> None:
    _require(isinstance(error, dict), "an error must be an object", error)
    _require(error.keys() - {"data"} == {"code", "message"}, "an error has code, message and data", error)
    _require(type(error["code"]) is int, "code must be an integer", error)
    _require(isinstance(error["message"], str) and bool(error["message"]), "message must be a text", error)
    if is_modern:
        is_reserved = error["code"] in (-32002, -32042) or -32099 <= error["code"] <= -32020
        _require(not is_reserved or error["code"] in MODERN_CODES, "a reserved code", error)


def _check_notification(message: Json, revision: str | None) -> None:
    if revision is None:
        revision = MODERN
    body = {key: value for key, value in message.items() if key != "jsonrpc"}
    if message["method"] in task_shapes.NOTIFICATIONS:
        _require(revision == task_shapes.NOTIFICATIONS[message["method"]], "a notification of another wire", message)
        fault = task_shapes.fault_of_notification(message["method"], message["params"])
        _require(not fault, fault, message)
    elif revision in OFFICIAL:
        model = official.SERVER_NOTIFICATIONS.get((message["method"], revision))
        _require(model is not None, f"no such notification in {revision}", message)
        # The generated model wants the envelope too.
        _check_by_model(model, message)
    else:
        _check_by_table(revision, message["method"], body.get("params", {}))


def _check_request(message: Json, revision: str | None) -> None:
    _require(revision not in (None, MODERN), "a request to a client that made no handshake", message)
    assert revision is not None
    if revision in OFFICIAL:
        model = official.SERVER_REQUESTS.get((message["method"], revision))
        _require(model is not None, f"no such request in {revision}", message)
        _check_by_model(model, message)
    else:
        _check_by_table(revision, message["method"], message.get("params", {}))


def _check_result(method: str | None, result: Json, revision: str | None) -> None:
    _require(method is not None, "a result for a request that we did not send", result)
    assert method is not None
    if method == "initialize":
        revision = result.get("protocolVersion")
        _require(revision in (*old_shapes.REVISIONS, "2025-11-25"), "not a handshake revision", revision)
    if method in EMPTY_RESULTS:
        _require(not result.keys() - {"_meta"}, f"the result of {method} must be empty", result)
    elif task_shapes.is_about_task(method, result):
        fault = task_shapes.fault_of_result(method, result, revision)
        _require(not fault, fault, result)
    elif method in OF_EXTENSIONS:
        _require(revision == MODERN, f"{method} does not exist in {revision}", result)
        members = result.keys() - {"_meta", "nextCursor"}
        _require(members == {*CACHED, OF_EXTENSIONS[method]}, f"members of {method}", result)
    elif revision in OFFICIAL:
        model = official.SERVER_RESULTS.get((method, revision))
        _require(model is not None, f"{method} does not exist in {revision}", result)
        _check_by_model(_arm(model, result), result)
    else:
        _require(revision is not None, f"a result of {method} before any handshake", result)
        assert revision is not None
        _check_by_table(revision, method, result)
    if revision == MODERN:
        _check_modern_members(result)
    else:
        _check_property_schemas(result.get("tools", []))
    _check_base64([*result.get("content", []), *(each["content"] for each in result.get("messages", []))])
    _check_base64([{"resource": each} for each in result.get("contents", [])])


def _check_modern_members(result: Json) -> None:
    """What the official types leave open."""
    _require(result["resultType"] in ("complete", "input_required", "task"), "unknown resultType", result["resultType"])
    if "ttlMs" in result and "taskId" not in result:
        _require(type(result["ttlMs"]) is int and result["ttlMs"] >= 0, "ttlMs must be a natural number", result)
    _require(SERVER_INFO in result.get("_meta", {}), "serverInfo is missing in _meta", result)


def _check_property_schemas(tools: list[Json]) -> None:
    """Before the stateless era the schema of a property is an object; the official types do not look."""
    for tool in tools:
        for name, schema in tool["inputSchema"].get("properties", {}).items():
            _require(isinstance(schema, dict), f"the schema of property {name} must be an object", tool)


def _check_base64(blocks: list[Json]) -> None:
    for block in blocks:
        data = block.get("data", block.get("resource", {}).get("blob", ""))
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Invalid(f"not base64: {data[:60]!r}") from error


def _check_by_table(revision: str, what: str, value: Json) -> None:
    problem = old_shapes.problem(revision, what, value)
    _require(problem is None, f"{what} in {revision}: {problem}", value)


def _check_by_model(model: Any, value: Json) -> None:
    try:
        parsed = _adapter(model).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise Invalid(f"{error}\n{json.dumps(value)[:2000]}") from error
    _require_known(value, parsed, "")


def _arm(model: Any, result: Json) -> Any:
    """Of several possible results, the one that the result says it is: anything would pass for one of them."""
    asks = result.get("resultType") == "input_required"
    arms = [arm for arm in get_args(model) if (arm.__name__ == "InputRequiredResult") == asks]
    return arms[0] if arms else model


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _require_known(given: Any, parsed: Any, where: str) -> None:
    """Fail on members that the model left out, and on null where a member should have been left out."""
    if given == parsed:
        return  # data that no model describes, of any size
    if isinstance(parsed, RootModel):
        _require_known(given, parsed.root, where)
    elif isinstance(parsed, BaseModel):
        names = {field.alias or name: name for name, field in type(parsed).model_fields.items()}
        for key, value in given.items():
            if key in names:
                _require(value is not None or key in MAY_BE_NULL, f"{where}/{key} must not be null", given)
                _require_known(value, getattr(parsed, names[key]), f"{where}/{key}")
            else:
                place = "/".join("*" if part.isdigit() else part for part in f"{where}/{key}".split("/"))
                is_known = place in EARLY_MEMBERS or place in OWN_MEMBERS
                is_open = type(parsed).model_config.get("extra") == "allow" or is_known
                _require(is_open, f"unknown member {where}/{key}", given)
    elif isinstance(parsed, list):
        for index, pair in enumerate(zip(given, parsed, strict=True)):
            _require_known(*pair, f"{where}/{index}")
    elif isinstance(parsed, dict):
        for key in given:
            _require_known(given[key], parsed[key], f"{where}/{key}")


def _require(condition: bool, complaint: str, value: Any) -> None:
    if not condition:
        raise Invalid(f"{complaint}: {str(value)[:2000]}")
