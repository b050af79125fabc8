"""Parse the head of a request, or choose the status that rejects it. Pure.

The parser is strict, because a proxy in front may read a doubtful head differently, and one of the two would then take
the end of a request for the beginning of the next. It accepts no folded lines, no bare newlines, one length or one
encoding, no host except in `Host`, and no second value for a header that has one meaning.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BAD = "400 Bad Request"
TOO_LARGE = "431 Request Header Fields Too Large"
MAX_HEAD_BYTES = 32_768
MAX_FIELDS = 100
MAX_TARGET_CHARS = 8_192

REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
# One line after the other, each with a name that is a token. Nothing in it can be matched in two ways, so this takes
# time in proportion to its length, whatever comes in.
FIELDS = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*")
LENGTH = re.compile(r"[0-9]{1,15}")

# Each of these could be understood in two ways if it came twice.
SINGLE = frozenset({"authorization", "content-length", "content-type", "expect", "host", "last-event-id", "origin"})
SINGLE |= {"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "transfer-encoding"}
PARAM = "mcp-param-"  # a tool may have chosen a name with an underscore


class BadRequest(Exception):
    """A request that is refused; `reason` is for the client. The next one cannot be found, so the connection ends."""

    def __init__(self, reason: str, status: str = BAD) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Head(NamedTuple):
    """`fields` by their names in lower case. `length_bytes` is None for a body in chunks."""

    method: str
    target: str
    minor_version: int
    fields: dict[str, str]
    length_bytes: int | None
    is_kept_alive: bool
    expects_continue: bool


def parse(raw: bytes) -> Head:
    """Parse everything before the empty line. Raises BadRequest."""
    line, _, rest = raw.partition(b"\r\n")
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise BadRequest("The request line is not valid HTTP/1.1.")
    method, target, major, minor = found.groups()
    if len(target) > MAX_TARGET_CHARS:
        raise BadRequest(f"The path may have at most {MAX_TARGET_CHARS} characters.", "414 URI Too Long")
    if major != b"1":
        raise BadRequest("This server only supports HTTP/1.1.", "505 HTTP Version Not Supported")
    if not target.startswith(b"/"):
        raise BadRequest("The target of a request must be a path.")
    fields = _fields(rest + b"\r\n" if rest else b"")
    minor_version = int(minor)
    if minor_version and "host" not in fields:
        raise BadRequest("A request needs exactly one Host header.")
    length_bytes = _length_of(fields, minor_version)
    expected = fields.get("expect")
    if expected is not None and expected.lower() != "100-continue":
        raise BadRequest("The only supported expectation is 100-continue.", "417 Expectation Failed")
    options = {each.strip(" \t") for each in fields.get("connection", "").lower().split(",")}
    return Head(
        method.decode("ascii"),
        target.decode("ascii"),
        minor_version,
        fields,
        length_bytes,
        is_kept_alive="close" not in options and (minor_version > 0 or "keep-alive" in options),
        expects_continue=expected is not None and minor_version > 0,
    )


def _fields(raw: bytes) -> dict[str, str]:
    if FIELDS.fullmatch(raw) is None:
        raise BadRequest("A header line is not well-formed.")
    lines = raw.decode("latin-1").split("\r\n")
    lines.pop()
    if len(lines) > MAX_FIELDS:
        raise BadRequest(f"A request may have at most {MAX_FIELDS} header lines.", TOO_LARGE)
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if "_" in name and not name.startswith(PARAM):
            continue  # some proxies take it for the name with hyphens
        if name not in fields:
            fields[name] = value
        elif name in SINGLE or name.startswith(PARAM):
            raise BadRequest(f"The header {name} occurs twice.")
        else:
            fields[name] += f", {value}"
    return fields


def _length_of(fields: dict[str, str], minor_version: int) -> int | None:
    """Return the length of the body; None for a body in chunks."""
    encoding, length = fields.get("transfer-encoding"), fields.get("content-length")
    if encoding is None:
        if length is None:
            return 0
        if LENGTH.fullmatch(length) is None:
            raise BadRequest("Content-Length is not a number.")
        return int(length)
    if length is not None:
        raise BadRequest("Content-Length and Transfer-Encoding cannot be combined.")
    if encoding.lower() != "chunked" or not minor_version:
        raise BadRequest("The only supported transfer encoding is chunked, with HTTP/1.1.", "501 Not Implemented")
    return None
