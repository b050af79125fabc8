"""A tool that prints something else before its JSON: its author is told which line it was."""

from __future__ import annotations

import pytest

from mcpgreen.running.scripts.results import CONVERT, MAX_STRAY_BYTES, bad_byte_in, stray_in
from tests.support import ways
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

way, project = ways.way, ways.project

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
REMEDY = "print everything but the result to stderr (>&2)"
SPOILT = """echo; echo Loading; echo '{"a": 1}'"""


def test_with_a_schema_the_error_names_the_line(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("spoilt", SPOILT, outputSchema=SCHEMA)

    result = speak().call_tool("spoilt")

    assert result["isError"]
    said = "Tool output is not valid JSON for declared outputSchema: "
    assert result["content"][0]["text"] == f"{said}line 2 of the output is not JSON ('Loading'); {REMEDY}"


def test_without_a_schema_the_logs_name_the_line(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("spoilt", SPOILT)
    client = speak()

    result = client.call_tool("spoilt")

    warning = f"Tool 'spoilt' has no structured content: line 2 of the output is not JSON; {REMEDY}"
    assert (result["isError"], text_of(result)) == (False, '\nLoading\n{"a": 1}\n')
    assert [notice["params"]["data"] for notice in client.wire.notices("notifications/message")] == [warning]
    eventually(lambda: warning in client.wire.stderr)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ('Loading\n{"a": 1}', 1),
        ('[INFO] Loading\n[INFO] Done\n{\n "a": [1]\n}\n', 1),
        ('Loading\n{not this}\n{"a": 1}', 1),
        ('{"a": 1}', None),
        ('\n\n{"a": 1}', None),
        ('{"a": 1}\n{"a": 2}', None),
        ("Loading\nDone", None),
        ('{"a": 1}\nDone', None),
        ("Loading\n[1]", None),
        ("if x\n{\n  y\n}", None),
        ("x" * MAX_STRAY_BYTES + '\n{"a": 1}', None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_stands_before_an_object_is_found(output: str, line: int | None) -> None:
    found = stray_in([output.encode()])
    assert (found.line if found else None) == line


@ways.per_call("exit status")
def test_a_tool_that_fails_and_prints_another_encoding_is_told_both(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("latin", r"printf 'a\ncaf\xe9\n'; exit 3")
    client = speak()

    assert client.call_tool("latin")["isError"]
    warning = f"Tool 'latin' printed a byte that is not UTF-8 (0xe9 on line 2); {CONVERT}"
    eventually(lambda: warning in client.wire.stderr)


@pytest.mark.parametrize(
    ("chunks", "place"),
    [
        ([], None),
        ([b"plain"], None),
        (["Zoë".encode()], None),
        ([b"Zo\xc3", b"\xab"], None),
        ([b"Zo\xc3"], "0xc3 on line 1"),
        ([b"a\n", b"b\n\xff"], "0xff on line 3"),
        ([b"\xe4" * (MAX_STRAY_BYTES + 1)], "0xe4 on line 1"),
        (["ä".encode() * MAX_STRAY_BYTES + b"\xff"], None),
        ([b"a" + "ä".encode() * MAX_STRAY_BYTES], None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_first_byte_that_is_not_utf8_is_found(chunks: list[bytes], place: str | None) -> None:
    assert bad_byte_in(chunks) == place
