"""Check that the headers of a stateless request say the same as its body. Pure.

A proxy routes and counts by `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` without reading bodies. So headers that differ
from the body are an attack on a proxy that trusts them, and are refused before anything else is checked.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from mcpgreen.errors import HeaderMismatch
from mcpgreen.protocol.admission import PROTOCOL_VERSION
from mcpgreen.protocol.revisions import NAMED_BY
from mcpgreen.text.json_types import Json
from mcpgreen.transports.http.wire.heads import PARAM

ENCODED = re.compile(r"=\?base64\?(.*)\?=")
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")
MARK = "x-mcp-header"
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
MAX_DEPTH = 16
MAX_MARKED = 50

Path = tuple[str, ...]


def require_match(fields: Mapping[str, str], message: Json, marked: Mapping[str, Path]) -> None:
    """`fields` are the headers, by their names in lower case; `marked` are the arguments of the tool that are repeated
    in headers. Raises HeaderMismatch."""
    params = message.get("params")
    params = params if type(params) is dict else {}
    method = message["method"]
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION) if type(meta) is dict else None
    if type(version) is str:  # an incomplete envelope has an error of its own
        _require_equal("MCP-Protocol-Version", fields.get("mcp-protocol-version"), version)
    _require_equal("Mcp-Method", fields.get("mcp-method"), method)
    name = params.get(NAMED_BY[method]) if method in NAMED_BY else None
    if type(name) is str:
        sent = fields.get("mcp-name")
        _require_equal("Mcp-Name", None if sent is None else decoded(sent), name)
    for header, path in marked.items():
        value = _value_at(params.get("arguments"), path)
        _require_same_value(f"Mcp-Param-{header}", fields.get(PARAM + header), value)


def marked_arguments(schema: object) -> dict[str, Path]:
    """Return the paths of the arguments that a schema wants as headers, by the names of the headers. Marks that clients
    have to ignore are ignored here, too."""
    found: dict[str, Path] = {}
    twice: set[str] = set()
    for name, path in _marks(schema, (), MAX_DEPTH):
        if name.lower() in found:
            twice.add(name.lower())
        elif len(found) < MAX_MARKED:
            found[name.lower()] = path
    return {name: path for name, path in found.items() if name not in twice}


def decoded(value: str) -> str:
    """Return the value of Mcp-Name or Mcp-Param-*, decoded if it is encoded. Raises HeaderMismatch."""
    if not value.isascii():
        raise HeaderMismatch("A header has to be ASCII; anything else is encoded as =?base64?...?=.")
    found = ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode("utf-8")
    except ValueError as error:
        raise HeaderMismatch("A header is not valid base64 of UTF-8.") from error


def _require_equal(header: str, sent: str | None, value: str) -> None:
    if sent is None:
        raise HeaderMismatch(f"The header {header} is missing.")
    if sent != value:
        raise HeaderMismatch(f"The header {header} does not say the same as the body.")


def _require_same_value(header: str, sent: str | None, value: object) -> None:
    if value is None:
        if sent is not None:
            raise HeaderMismatch(f"The header {header} has a value that the body does not have.")
        return
    if type(value) not in (str, int, bool, float):
        return  # a header cannot hold it; the schema decides whether it is valid
    if sent is None:
        raise HeaderMismatch(f"The header {header} is missing.")
    text = decoded(sent)
    if type(value) is bool:
        is_same = text == ("true" if value else "false")
    elif type(value) is str:
        is_same = text == value
    else:
        is_same = NUMBER.fullmatch(text) is not None and Decimal(text) == value  # exactly, also where a float rounds
    if not is_same:
        raise HeaderMismatch(f"The header {header} does not say the same as the body.")


def _marks(schema: object, path: Path, depth: int) -> Iterator[tuple[str, Path]]:
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


def _value_at(arguments: object, path: Path) -> object:
    for name in path:
        if type(arguments) is not dict:
            return None
        arguments = arguments.get(name)
    return arguments
