"""The table of arguments for shell scripts: what it holds, and what it leaves to jq."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.text import jsontext
from mcpgreen.text.argument_table import MAX_JSON_BYTES, MAX_ROWS, table_of


def rows(arguments: dict[str, Any]) -> list[str]:
    encoded = jsontext.dumps(arguments)
    first, *others = table_of(encoded).decode("ascii").split("\n")
    assert first == encoded.decode("ascii")
    return others


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("Ada", "sAda"),
        ("", "s"),
        (" $(x) `y` '\" = % * ", "s $(x) `y` '\" = % * "),
        ("a\\b\n\t\x1fü😀", "ea\\x5cb\\x0a\\x09\\x1f\\xc3\\xbc\\xf0\\x9f\\x98\\x80"),
        ("a\0b", "j"),
        (None, "vnull"),
        (True, "vtrue"),
        (False, "vfalse"),
        (0, "v0"),
        (-(10**15) + 1, "v-999999999999999"),
        (10**15, "j"),
        (0.25, "v0.25"),
        (-12.5, "v-12.5"),
        (0.001, "v0.001"),
        (0.0001, "j"),
        (1.0, "j"),
        (-0.0, "j"),
        (1e300, "j"),
        (0.1 + 0.2, "j"),
        ([], "a"),
        (["x", "", "\t", 1, None], "a\tsx\ts\te\\x09\tv1\tvnull"),
        (["x", 1.0], "j"),
        ([[]], "j"),
        ([{}], "j"),
        ([1] * (MAX_ROWS + 1), "j"),
    ],
)
def test_a_value_is_what_every_jq_prints_or_left_to_jq(value: object, cell: str) -> None:
    assert rows({"a": value}) == [f".a={cell}"]


def test_half_of_a_character_is_left_to_jq() -> None:
    assert table_of(b'{"a":"\\ud800","b":"\\ude00x"}').splitlines()[1:] == [b".a=j", b".b=j"]


def test_members_of_objects_have_rows_of_their_own_down_to_a_depth() -> None:
    deep = {"a": {"b": 1, "c": {"d": {"e": {"f": 1}, "g": 2}}}, "h": {}}
    assert rows(deep) == [".a=o", ".a.b=v1", ".a.c=o", ".a.c.d=o", ".a.c.d.e=j", ".a.c.d.g=v2", ".h=o"]


def test_names_that_are_no_plain_path_have_no_row() -> None:
    odd = ["", "a.b", "a=b", "a b", "a\nb", "1a", "é", "a[0]", '"a"', "-a", "$a", "a\0"]
    assert rows(dict.fromkeys([*odd, "a", "dry-run", "_A9"], 1)) == [".a=v1", ".dry-run=v1", "._A9=v1"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"a": "x" * MAX_JSON_BYTES}, {f"a{number}": 1 for number in range(MAX_ROWS)}, {"a": "\x7f"}],
    ids=["nothing", "too long", "too many", "no printable JSON"],
)
def test_what_is_empty_or_large_or_odd_has_no_table(arguments: dict[str, Any]) -> None:
    assert table_of(jsontext.dumps(arguments)) == b""


def test_all_of_it_is_plain_ascii() -> None:
    table = table_of(jsontext.dumps({"a": "".join(map(chr, range(1, 127))), "b": ["\x01\x80\uffff"]}))
    assert not set(table) - {*range(32, 127), *b"\t\n"}
