"""The arguments of a call as rows of text, so that bash finds an argument without starting a program.

Line 1 is the JSON that the rows are made from: a script that gets other arguments sees that the table is not for them.
Then comes a row for each member that can be named by a plain path, such as `.name=sAda` or `.size.width=v12`. After the
equals sign a letter says how to read the rest:

    s  a plain text
    e  a text in which every backslash and every byte that is not printable ASCII is written as \\xHH, for `printf %b`
    v  a value that every jq prints in the same way: true, false, null, integers, short fractions
    o  an object; its members have rows of their own
    a  an array of such texts and values, each behind a tab
    j  a value that needs jq

So if an object, or the root, has no row for a member, the member is absent.

Rule: a row holds exactly the bytes that every jq prints for its path, or the letter j. The table consists of printable
ASCII, tabs and line breaks, so that it reads the same in every locale, and nothing in it is ever evaluated.
"""

from __future__ import annotations

import re

from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_JSON_BYTES = 4096  # the environment of a script holds the arguments twice
MAX_ROWS = 200  # and items of an array
MAX_DEPTH = 4
TOO_LARGE = 10**15  # some versions of jq print longer integers with an exponent
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_PLAIN_TEXT = re.compile(r"[ -\[\]-~]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), ord("\\"), *range(127, 256))}
# A float keeps fifteen digits. Small fractions may get an exponent, whole numbers may lose their ".0".
_PLAIN_FRACTION = re.compile(r"-?(?=[\d.]{3,16}\Z)(?:[1-9]\d*\.\d*|0\.(?:0{0,2}[1-9])\d*)(?<=[1-9])")


def table_of(arguments_json: bytes) -> bytes:
    """The table of an object that `jsontext.dumps` wrote; empty if there are no arguments, or too many."""
    if not 2 < len(arguments_json) <= MAX_JSON_BYTES or b"\x7f" in arguments_json:
        return b""
    rows = [arguments_json.decode("ascii")]
    _add_rows(rows, "", jsontext.parsed(arguments_json), MAX_DEPTH)
    return "\n".join(rows).encode("ascii") if len(rows) <= MAX_ROWS else b""


def _add_rows(rows: list[str], path: str, members: Json, depth: int) -> None:
    for name, value in members.items():
        if len(rows) > MAX_ROWS:
            return
        if not _PLAIN_NAME.fullmatch(name):
            continue
        if type(value) is dict and depth > 1:
            rows.append(f"{path}.{name}=o")
            _add_rows(rows, f"{path}.{name}", value, depth - 1)
        elif type(value) is list and len(value) <= MAX_ROWS:
            items = [_cell(item) for item in value]
            rows.append(f"{path}.{name}=" + ("j" if "j" in items else "\t".join(["a", *items])))
        else:
            rows.append(f"{path}.{name}={_cell(value)}")


def _cell(value: object) -> str:
    if isinstance(value, str):
        if _PLAIN_TEXT.fullmatch(value):
            return f"s{value}"
        if "\0" in value or _SURROGATE.search(value):
            return "j"  # no variable can hold it, or versions of jq read it in different ways
        return "e" + value.encode("utf-8").decode("latin-1").translate(_ESCAPES)
    if value is None or isinstance(value, bool):
        return {None: "vnull", True: "vtrue", False: "vfalse"}[value]
    if isinstance(value, int):
        is_exact = -TOO_LARGE < value < TOO_LARGE
    else:
        is_exact = isinstance(value, float) and _PLAIN_FRACTION.fullmatch(repr(value)) is not None
    return f"v{value!r}" if is_exact else "j"
