"""Headers that have to say the same as the body of a stateless request, as functions."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mcpgreen.errors import HeaderMismatch
from mcpgreen.transports.http.stateless import MAX_MARKED, marked_arguments, require_match

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION}


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def message(method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}}


def headers(**more: str) -> dict[str, str]:
    return {"mcp-protocol-version": VERSION, "mcp-method": "tools/call", "mcp-name": "t", **more}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "Grüße, 世界"}),
        ("prompts/get", {"name": " spaces "}),
        ("resources/read", {"uri": "file:///ü"}),
    ],
)
def test_a_name_may_be_encoded(method: str, params: dict[str, str]) -> None:
    name = next(iter(params.values()))

    require_match(headers(**{"mcp-method": method, "mcp-name": encoded(name)}), message(method, **params), {})


@pytest.mark.parametrize("sent", ["=?base64?!!!?=", "=?base64?/w==?=", "=?base64?YQ?=", "=?base64?\xe9?="])
def test_a_name_that_is_encoded_badly_is_refused(sent: str) -> None:
    with pytest.raises(HeaderMismatch):
        require_match(headers(**{"mcp-name": sent}), message(name="a"), {})


@pytest.mark.parametrize("header", ["mcp-protocol-version", "mcp-method"])
def test_method_and_version_are_never_encoded(header: str) -> None:
    """A proxy that looks for the plain text would not find it."""
    fields = headers()
    fields[header] = encoded(fields[header])

    with pytest.raises(HeaderMismatch):
        require_match(fields, message(name="t"), {})


def test_a_method_without_a_name_needs_no_name() -> None:
    fields = {"mcp-protocol-version": VERSION, "mcp-method": "tools/list"}

    require_match(fields, message("tools/list"), {})


@pytest.mark.parametrize("name", [None, 5, ["t"]])
def test_a_name_that_is_no_text_has_no_header(name: object) -> None:
    """The handler says what is wrong with it."""
    require_match(headers(), message(name=name), {})


@pytest.mark.parametrize("params", [None, [], {"_meta": []}, {"_meta": {}}])
def test_an_incomplete_envelope_is_none_of_the_headers_business(params: Any) -> None:
    fields = {"mcp-protocol-version": VERSION, "mcp-method": "tools/list"}

    require_match(fields, {"method": "tools/list", "params": params}, {})


@pytest.mark.parametrize(
    ("value", "sent", "is_same"),
    [
        ("eu", "eu", True),
        ("eu", "EU", False),
        ("eu", encoded("eu"), True),
        ("eu", None, False),
        (5, "5", True),
        (5, "05", True),
        (5, "+5", True),
        (42, "42.0", True),
        (42, "4.2e1", True),
        (42, "420E-1", True),
        (42, encoded("42.0"), True),
        (42.0, "42", True),
        (42, "42.5", False),
        (42, "42.", False),
        (42, ".42e2", False),
        (42, "0x2a", False),
        (42, "4_2", False),
        (42, "٤٢", False),
        (42, encoded(" 42"), False),
        (42, "", False),
        (5, "five", False),
        (0, "-0", True),
        (0, "-0.0", True),
        (0, "1e-9999", False),
        (0, "false", False),
        (1, "true", False),
        (5, "NaN", False),
        (5, "5e99999999999999999999", False),
        (2**53, "9007199254740993", False),
        (2**53 + 1, "9007199254740993.0", True),
        (10**400, "1e400", True),
        (float("inf"), "1e400", False),
        (float("inf"), "Infinity", False),
        ("é", "\xe9", False),
        ("42", "42", True),
        ("42", "42.0", False),
        ("eu", "=?BASE64?ZXU=?=", False),
        ("=?BASE64?ZXU=?=", "=?BASE64?ZXU=?=", True),
        ("=?base64?e u?=", "=?base64?e u?=", False),
        (-5, "-5", True),
        (True, "true", True),
        (True, "True", False),
        (False, "false", True),
        (True, "1", False),
        (None, None, True),
        (None, "eu", False),
        ({"a": 1}, None, True),
        (10**400, "1" + "0" * 299, False),
    ],
)
def test_an_argument_with_a_header_of_its_own(value: object, sent: str | None, is_same: bool) -> None:
    fields = headers() if sent is None else headers(**{"mcp-param-region": sent})
    call = message(name="t", arguments={"place": {"region": value}})
    marked = {"region": ("place", "region")}

    if is_same:
        require_match(fields, call, marked)
    else:
        with pytest.raises(HeaderMismatch):
            require_match(fields, call, marked)


@pytest.mark.parametrize("arguments", [None, [], "x", {"place": 5}, {}])
def test_an_argument_that_is_not_there_has_no_header(arguments: object) -> None:
    require_match(headers(), message(name="t", arguments=arguments), {"region": ("place", "region")})


def string(mark: object) -> dict[str, Any]:
    return {"type": "string", "x-mcp-header": mark}


def test_marks_are_found_below_properties() -> None:
    schema = {
        "properties": {
            "region": string("Region"),
            "place": {"properties": {"zone": {"type": "integer", "x-mcp-header": "zone"}}},
        },
    }

    assert marked_arguments(schema) == {"region": ("region",), "zone": ("place", "zone")}


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "number", "x-mcp-header": "a"}},
        {"a": {"type": "object", "x-mcp-header": "a"}},
        {"a": {"x-mcp-header": "a"}},
        {"a": string("")},
        {"a": string("not a token")},
        {"a": string(5)},
        {"a": string("same"), "b": string("SAME")},
        {"a": {"items": {"properties": {"b": string("b")}}}},
        {"a": True},
        [],
    ],
)
def test_marks_that_clients_pass_over_are_passed_over(properties: object) -> None:
    assert marked_arguments({"properties": properties}) == {}


def test_schemas_made_to_be_costly_are_not() -> None:
    deep: dict[str, Any] = string("deep")
    for _ in range(100):
        deep = {"properties": {"a": deep}}
    wide = {"properties": {f"p{number}": string(f"p{number}") for number in range(1000)}}

    assert marked_arguments(deep) == {}
    assert len(marked_arguments(wide)) == MAX_MARKED
