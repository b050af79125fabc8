"""The parts of the page that only compute: asked in the browser, without looking at it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.support.programs import completed
from tests.workbench.page.window import Window

CALL = {
    "number": 12,
    "id": 5,
    "link": 3,
    "pid": 99,
    "method": "tools/call",
    "name": "stats",
    "client": "Cursor",
    "status": "timed out",
    "arguments": {"path": "a b.txt"},
    "begin": 100,
    "endedAt": 101.5,
    "notes": [],
}


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("", True),
        ("tool:stats", True),
        ("tool:sta client:cursor", True),
        ("tool:st*", True),
        ("tool:tat*", False),
        ("-tool:stats", False),
        ("status:error", True),
        ("status:timed-out", True),
        ("status:ok", False),
        ("dur:>1s dur:<2000ms", True),
        ("dur:2", False),
        ("dur:>1m", False),
        ("call:12 id:5 pid:99 link:3", True),
        ("call:1", False),
        ("server:garden pid:7", True),
        ('"a b.txt"', True),
        ("a c.txt", False),
        ("nokey:stats", False),
        ("-nokey:stats", True),
    ],
)
def test_the_filter_finds_what_its_terms_say(window: Window, text: str, is_found: bool) -> None:
    server = {"name": "garden", "project": "/home/g", "pid": 7}
    asked = f"(await import('/filter.js')).parse({json.dumps(text)})({json.dumps(CALL)}, {json.dumps(server)})"
    assert window.js(asked) is is_found


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "date-time"}, "datetime"),
        ({"type": ["integer", "null"]}, "number"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "boolean"),
        ({"enum": ["a", 1]}, "choice"),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "choice"),
        ({"const": "a"}, "constant"),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, "list"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "choices"),
        ({"type": "array"}, "json"),
        ({"properties": {"a": {}}}, "object"),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, "object"),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, "variants"),
        ({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "object"),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "number"}}}, "number"),
        ({"$ref": "https://example.com/schema"}, "json"),
        ({"$ref": "#"}, "json"),
        (True, "json"),
    ],
)
def test_a_schema_becomes_the_field_that_fits(window: Window, schema: Any, kind: str) -> None:
    assert window.js(f"(await import('/schema-model.js')).fieldOf({json.dumps(schema)}).kind") == kind


def test_a_schema_that_contains_itself_ends(window: Window) -> None:
    tree = {"type": "object", "properties": {f"side{n}": {"$ref": "#"} for n in range(9)}}
    size = f"JSON.stringify((await import('/schema-model.js')).fieldOf({json.dumps(tree)}).properties.length)"
    assert window.js(size) == "9"


def test_numbers_keep_their_digits(window: Window) -> None:
    text = '{"id":12345678901234567890,"rate":1.50,"far":1e999}'
    module = "const { parse, stringify } = await import('/exact-json.js');"
    written = window.js(f"await (async () => {{ {module} return stringify(parse({json.dumps(text)})); }})()")
    assert written == '{"id":12345678901234567890,"rate":1.5,"far":1e999}'


EVENTS: list[dict[str, Any]] = [
    {"kind": "server", "pid": 7, "started_at": 1, "name": "garden"},
    {"kind": "opened", "link": 1, "client": {"name": "cursor"}, "revision": "2026-07-28"},
    {"kind": "frame", "link": 1, "id": 4, "method": "tools/call", "way": "in", "bytes": 9, "frame": "{}"},
    {"kind": "queued", "link": 1, "call": 3, "id": 4, "method": "tools/call", "name": "wash", "place": 0},
    {
        "kind": "started",
        "call": 3,
        "link": 1,
        "argv": ["wash"],
        "pid": 50,
        "way": "fresh",
        "variables": [],
        "waited_ms": 100,
    },
    {"kind": "ended", "call": 3, "link": 1, "outcome": "task", "method": "tools/call", "task": "t"},
    {"kind": "queued", "link": 1, "call": 4, "id": 5, "method": "tasks/get", "task": "t", "place": 0},
    {
        "kind": "ended",
        "link": 0,
        "call": 3,
        "outcome": "ok",
        "method": "tools/call",
        "queue_ms": 100,
        "run_ms": 150,
        "write_ms": 1,
    },
    {"kind": "ended", "link": 1, "outcome": "refused", "method": "tools/call", "name": "none"},
]


def test_events_become_calls(window: Window) -> None:
    """A task ends twice; its polls are counted; a frame comes before its call; the ring may come a second time."""
    events = [{"n": number, "at": 1000 + number / 10, **event} for number, event in enumerate(EVENTS)]
    made = f"""await (async () => {{
        const {{ CallsModel, segmentsOf }} = await import('/calls-model.js');
        const model = new CallsModel();
        const events = {json.dumps(events)};
        for (const event of [...events, ...events]) model.apply(event);
        const [wash] = model.list;
        return {{ numbers: model.list.map((call) => call.number), client: wash.client, status: wash.status,
          polls: wash.polls, frames: wash.frames.length, ...segmentsOf(wash) }};
    }})()"""
    made = window.js(made)
    assert made.pop("numbers") == [3, 4, -8]
    spent = [round(made.pop(part)) for part in ("queue", "start", "run", "write")]
    assert made == {"client": "cursor", "status": "ok", "polls": 1, "frames": 1}
    assert spent == [100, 0, 299, 1]


def test_time_without_calls_takes_little_room(window: Window) -> None:
    places = (
        "const { busyScale } = await import('/time-scale.js'); const { place } = busyScale([[0, 1], [1000, 1001]]);"
    )
    begin, end = window.js(f"await (async () => {{ {places} return [place(1000), place(1001)]; }})()")
    assert 50 < begin < 55 and end == 100


def test_a_command_line_can_be_pasted_into_a_shell(window: Window) -> None:
    words = ["run-tool", "a-b", "--args", json.dumps({"text": 'it\'s $HOME; `ls`\n"ü" \\ !x', "n": [1, None]}), ""]
    line = window.js(f"(await import('/format.js')).shellLine({json.dumps(words)})")
    assert shlex.split(line) == words
    echoed = completed(["bash", "-c", f"printf '%s\\0' {line}"]).stdout
    assert echoed.split("\0")[:-1] == words


def test_a_frame_is_beside_the_call_of_a_stateless_client(window: Window) -> None:
    """Its link is made for its call, so its frame has the link of the connection."""
    frame = {"kind": "frame", "n": 1, "at": 1, "way": "in", "id": 7, "method": "tools/call", "link": 3, "frame": "{}"}
    queued = {"kind": "queued", "n": 2, "at": 1, "call": 9, "link": 2, "id": 7, "method": "tools/call", "place": 0}
    tell = f"for (const event of {json.dumps([frame, queued])}) calls.apply(event);"
    made = "const { CallsModel } = await import('/calls-model.js'); const calls = new CallsModel();"
    assert window.js(f"await (async () => {{ {made} {tell} return calls.calls.get(9).frames.length }})()") == 1
