"""Stateless requests over HTTP: what their headers have to repeat of their bodies. Pure.

A proxy routes and counts by `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` without reading bodies. So headers that say
something else than the body are an attack on whoever trusts them, and refused before anything else is looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcpgreen.errors import HeaderMismatch
from mcpgreen.protocol.admission import PROTOCOL_VERSION
from mcpgreen.text.json_types import Json

# The member of params that Mcp-Name repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=", re.IGNORECASE)
INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
MARK = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
MAX_DEPTH = 16
MAX_MARKED = 50

Path = tuple[str, ...]


def require_match(variables: Mapping[str, Any], message: Json, marked: Mapping[str, Path]) -> None:
    """`variables` as WSGI has them; `marked` are the arguments of the tool that have a header of their own. Raises
    HeaderMismatch."""
    params = message.get("params")
    params = params if type(params) is dict else {}
    method = message["method"]
    _require_version(variables.get("HTTP_MCP_PROTOCOL_VERSION"), params)
    _require_equal("Mcp-Method", variables.get("HTTP_MCP_METHOD"), method)
    name = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    if type(name) is str:
        _require_equal("Mcp-Name", variables.get("HTTP_MCP_NAME"), name)
    if marked:
        arguments = params.get("arguments")
        for header, path in marked.items():
            sent = variables.get("HTTP_MCP_PARAM_" + header.upper().replace("-", "_"))
            _require_same_value(f"Mcp-Param-{header}", sent, _value_at(arguments, path))


def marked_arguments(schema: Any) -> dict[str, Path]:
    """Where in the arguments the values stand that a schema wants as headers, by the names of these headers. Those that
    clients have to pass over are passed over here, too."""
    found: dict[str, Path] = {}
    twice: set[str] = set()
    for name, path in _marks(schema, (), MAX_DEPTH):
        if name.lower() in found:
            twice.add(name.lower())
        elif len(found) < MAX_MARKED:
            found[name.lower()] = path
    return {name: path for name, path in found.items() if name not in twice}


def decoded(value: str) -> str:
    """What a header says: as it is, or what is encoded in it. Raises HeaderMismatch."""
    found = ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise HeaderMismatch("A header is not valid base64 of UTF-8.") from error


def _require_version(sent: str | None, params: Json) -> None:
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION) if type(meta) is dict else None
    if type(version) is not str:
        return  # an incomplete envelope: that has an error of its own
    _require_equal("MCP-Protocol-Version", sent, version)


def _require_equal(header: str, sent: str | None, value: str) -> None:
    if sent is None:
        raise HeaderMismatch(f"The header {header} is missing.")
    if decoded(sent) != value:
        raise HeaderMismatch(f"The header {header} does not say the same as the body.")


def _require_same_value(header: str, sent: str | None, value: Any) -> None:
    if value is None:
        if sent is not None:
            raise HeaderMismatch(f"The header {header} has a value that the body does not have.")
        return
    if type(value) not in (str, int, bool, float):
        return  # no header can say it; whether it is right is for the schema to say
    if sent is None:
        raise HeaderMismatch(f"The header {header} is missing.")
    text = decoded(sent)
    if type(value) is bool:
        is_same = text == ("true" if value else "false")
    elif type(value) is str:
        is_same = text == value
    else:
        is_same = INTEGER.fullmatch(text) is not None and int(text) == value
    if not is_same:
        raise HeaderMismatch(f"The header {header} does not say the same as the body.")


def _marks(schema: Any, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
    properties = schema.get("properties") if type(schema) is dict else None
    if type(properties) is not dict or not depth:
        return
    for name, each in properties.items():
        if type(each) is not dict:
            continue
        mark = each.get(MARK)
        if type(mark) is str and TOKEN.fullmatch(mark) and each.get("type") in ("string", "integer", "boolean"):
            yield mark, (*path, name)
        yield from _marks(each, (*path, name), depth - 1)


def _value_at(arguments: Any, path: Path) -> Any:
    for name in path:
        if type(arguments) is not dict:
            return None
        arguments = arguments.get(name)
    return arguments
