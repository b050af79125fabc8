"""Roots that a client names: how they are asked for, which are taken, and what calls see meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.links.roots import MAX_PATH_BYTES, MAX_ROOTS
from tests.support import ways
from tests.support.client import HANDSHAKE_REVISIONS, Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import CHECKOUT, MODERN, Wire, text_of

way, project = ways.way, ways.project

HAS_ROOTS: Json = {"roots": {"listChanged": True}}
FOR_EVER = 600  # longer than any test waits
CHANGED = "notifications/roots/list_changed"


@pytest.fixture(autouse=True)
def show(project: ProjectBuilder) -> None:
    """A tool that prints what it was told about the roots."""
    project.tool("show", """printf '%s\\n%s\\n%s' "$MCP_ROOTS_COUNT" "$MCP_ROOTS_JSON" "$MCP_ROOTS_PATHS\"""")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Three directories for clients to name."""
    made = {name: tmp_path / name for name in ("red", "green", "blue")}
    for path in made.values():
        path.mkdir()
    return made


def naming(*places: Path | str) -> Json:
    return {"roots": [{"uri": each if isinstance(each, str) else each.as_uri()} for each in places]}


def shown(client: Client) -> list[str]:
    """The paths of the roots that a call sees."""
    return text_of(client.call_tool("show")).split("\n")[2:]


def answered(speak: Speak, *places: Path | str, **options: Any) -> Client:
    """A client that has named its roots."""
    client = speak(capabilities=HAS_ROOTS, **options)
    client.answer(client.asked("roots/list"), naming(*places))
    return client


def requests_in(wire: Wire) -> list[Json]:
    return [message for message in wire.seen if "method" in message and "id" in message]


@pytest.mark.requirement("G-roots")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_the_roots_of_a_client_reach_its_tools(speak: Speak, folders: dict[str, Path], revision: str) -> None:
    client = speak(revision, capabilities=HAS_ROOTS)
    request = client.asked("roots/list")
    named = [{"uri": folders["red"].as_uri(), "name": "Red"}, {"uri": folders["blue"].as_uri()}]
    client.answer(request, {"roots": named})
    count, listed, *paths = text_of(client.call_tool("show")).split("\n")

    assert request == {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
    assert count == "2"
    assert paths == [str(folders["red"]), str(folders["blue"])]
    assert json.loads(listed) == [
        {"uri": folders["red"].as_uri(), "name": "Red", "path": str(folders["red"])},
        {"uri": folders["blue"].as_uri(), "name": "blue", "path": str(folders["blue"])},
    ]


@pytest.mark.requirement("G-roots", "P-044", "P-022")
@pytest.mark.parametrize(
    ("revision", "capabilities"),
    [
        *((revision, {}) for revision in HANDSHAKE_REVISIONS),
        (HANDSHAKE_REVISIONS[-1], {"roots": None}),
        (HANDSHAKE_REVISIONS[-1], {"roots": False}),
        (MODERN, {"roots": {}}),
    ],
    ids=str,
)
def test_a_client_that_cannot_be_asked_sees_the_configured_roots_at_once(
    project: ProjectBuilder, speak: Speak, revision: str, capabilities: Json
) -> None:
    client = speak(revision, capabilities=capabilities, ANSWER_SECS=FOR_EVER, DEBOUNCE_SECS=0)
    client.wire.notify(CHANGED)

    assert shown(client) == [str(project.root)]
    assert requests_in(client.wire) == []


@pytest.mark.requirement("G-roots")
def test_nothing_is_asked_before_the_client_is_ready(wire: Wire) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": HAS_ROOTS, "clientInfo": {"name": "c", "version": "1"}}
    wire.result("initialize", hello)
    wire.notify(CHANGED)
    wire.settle()
    assert requests_in(wire) == []

    wire.notify("notifications/initialized")
    wire.notify("notifications/initialized")
    assert wire.notice("roots/list")["id"] == 1
    wire.settle()
    assert len(requests_in(wire)) == 1


@pytest.mark.requirement("P-030", "P-031")
def test_an_answer_may_come_in_a_batch(speak: Speak, folders: dict[str, Path]) -> None:
    client = speak("2025-03-26", capabilities=HAS_ROOTS)
    answer = {"jsonrpc": "2.0", "id": client.asked("roots/list")["id"], "result": naming(folders["red"])}
    client.wire.send([answer, {"jsonrpc": "2.0", "method": "notifications/no-such"}])

    assert shown(client) == [str(folders["red"])]


@pytest.mark.requirement("G-roots-wait")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_call_waits_for_the_first_answer_while_others_go_on(
    speak: Speak, folders: dict[str, Path], revision: str
) -> None:
    client = speak(revision, capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER)
    id = client.start_tool("show")
    request = client.asked("roots/list")
    assert "show" in client.tools()
    assert client.result("ping") == {}
    client.answer(request, naming(folders["green"]))

    assert text_of(client.wire.response(id)["result"]).endswith(f"\n{folders['green']}")


@pytest.mark.requirement("G-roots-wait", "P-022")
def test_a_stateless_call_on_the_same_pipe_does_not_wait(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER)
    waiting = client.start_tool("show")
    request = client.asked("roots/list")
    stateless = {"name": "show", "arguments": {}}
    assert text_of(client.wire.modern("tools/call", stateless)["result"]).endswith(f"\n{project.root}")

    client.answer(request, naming(folders["red"]))
    assert text_of(client.wire.response(waiting)["result"]).endswith(f"\n{folders['red']}")
    assert text_of(client.wire.modern("tools/call", stateless)["result"]).endswith(f"\n{project.root}")


@pytest.mark.requirement("G-roots-wait", "P-261")
def test_a_call_can_be_cancelled_while_it_waits(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    project.tool("mark", "touch ran")
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER)
    id = client.start_tool("mark", id="cancelled")
    request = client.asked("roots/list")
    client.wire.notify("notifications/cancelled", {"requestId": id})
    client.answer(request, naming(folders["red"]))

    assert shown(client) == [str(folders["red"])]
    assert not (project.root / "ran").exists()
    assert not [message for message in client.wire.seen if message.get("id") == id]


@pytest.mark.requirement("G-roots-wait")
def test_waiting_calls_take_no_slot(project: ProjectBuilder, speak: Speak, folders: dict[str, Path]) -> None:
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER, max_concurrent_requests=1)
    waiting = [client.start_tool("show") for _ in range(3)]
    request = client.asked("roots/list")
    stateless = {"name": "show", "arguments": {}}
    assert text_of(client.wire.modern("tools/call", stateless)["result"]).endswith(f"\n{project.root}")

    client.answer(request, naming(folders["red"]))
    for id in waiting:
        assert text_of(client.wire.response(id)["result"]).endswith(f"\n{folders['red']}")


@pytest.mark.requirement("G-roots-wait")
def test_a_client_that_does_not_answer_in_time_is_told_and_gets_the_configured_roots(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    """The late answer must do no harm either: it is ignored, and the server lives on."""
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=0.3)
    request = client.asked("roots/list")
    assert shown(client) == [str(project.root)]
    assert client.wire.notice("notifications/cancelled")["params"]["requestId"] == request["id"]

    client.answer(request, naming(folders["red"]))
    assert shown(client) == [str(project.root)]


@pytest.mark.requirement("G-roots-wait")
def test_no_call_waits_for_a_client_that_has_closed_its_end(project: ProjectBuilder, speak: Speak) -> None:
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER, EOF_GRACE_SECS=FOR_EVER)
    client.asked("roots/list")
    id = client.start_tool("show")
    client.wire.close_stdin()

    assert text_of(client.wire.response(id)["result"]).endswith(f"\n{project.root}")
    assert client.wire.wait() == 0


@pytest.mark.requirement("G-roots-changed")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_changed_roots_are_asked_for_and_the_old_ones_serve_meanwhile(
    speak: Speak, folders: dict[str, Path], revision: str
) -> None:
    client = answered(speak, folders["red"], revision=revision, DEBOUNCE_SECS=0, ANSWER_SECS=FOR_EVER)
    assert shown(client) == [str(folders["red"])]
    client.wire.notify(CHANGED)
    request = client.asked("roots/list")
    assert shown(client) == [str(folders["red"])]

    client.answer(request, naming(folders["green"], folders["blue"]))
    eventually(lambda: shown(client) == [str(folders["green"]), str(folders["blue"])])


@pytest.mark.requirement("G-roots-changed")
def test_an_overtaken_answer_is_dropped(speak: Speak, folders: dict[str, Path]) -> None:
    client = speak(capabilities=HAS_ROOTS, DEBOUNCE_SECS=0, ANSWER_SECS=FOR_EVER)
    first = client.asked("roots/list")
    client.wire.notify(CHANGED)
    second = client.asked("roots/list")
    assert client.wire.notice("notifications/cancelled")["params"]["requestId"] == first["id"]
    client.answer(second, naming(folders["green"]))
    client.answer(first, naming(folders["red"]))

    assert shown(client) == [str(folders["green"])]
    client.answer(first, naming(folders["red"]))
    assert shown(client) == [str(folders["green"])]


@pytest.mark.requirement("G-roots")
def test_an_answer_that_makes_no_sense_changes_nothing(speak: Speak, folders: dict[str, Path]) -> None:
    client = answered(speak, folders["red"], DEBOUNCE_SECS=0)
    assert shown(client) == [str(folders["red"])]  # a change before that makes the server ask again, and forget it
    uri = folders["blue"].as_uri()
    for result in (
        None,
        5,
        "roots",
        [],
        [{"uri": uri}],
        {},
        {"roots": None},
        {"roots": {}},
        {"roots": uri},
        {"roots": [uri]},
        {"roots": [None]},
        {"roots": [[]]},
        {"roots": [{}]},
        {"roots": [{"uri": None}]},
        {"roots": [{"uri": 5}]},
        {"roots": [{"uri": [uri]}]},
        {"roots": [{"uri": uri, "name": 5}]},
        {"roots": [{"uri": uri}, {"name": "no uri"}]},
        {"roots": [{"uri": uri}] * (MAX_ROOTS + 1)},
        {"roots": [{"uri": uri, "name": "x" * 200_000}]},
        {"roots": [{"uri": "https://example.org/"}, {"uri": "file:///no/such/directory"}]},
    ):
        client.wire.notify(CHANGED)
        client.answer(client.asked("roots/list"), result)
        assert shown(client) == [str(folders["red"])], result
    assert eventually(lambda: client.wire.stderr.count("the client's roots are ignored") == 21)
    assert "Traceback" not in client.wire.stderr


@pytest.mark.requirement("G-roots")
def test_an_error_as_answer_changes_nothing(speak: Speak, folders: dict[str, Path]) -> None:
    client = answered(speak, folders["red"], DEBOUNCE_SECS=0)
    assert shown(client) == [str(folders["red"])]  # a change before that makes the server ask again, and forget it
    for error in ({"code": -32601, "message": "no"}, {"code": "x"}, {}, [], "no", 5, True):
        client.wire.notify(CHANGED)
        client.answer(client.asked("roots/list"), error=error)
        assert shown(client) == [str(folders["red"])], error
    assert client.wire.stderr == ""


@pytest.mark.requirement("G-roots")
def test_no_roots_at_all_means_the_configured_ones(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    client = answered(speak, folders["red"], DEBOUNCE_SECS=0)
    assert shown(client) == [str(folders["red"])]
    client.wire.notify(CHANGED)
    client.answer(client.asked("roots/list"), {"roots": []})

    eventually(lambda: shown(client) == [str(project.root)])


@pytest.mark.requirement("P-030")
@pytest.mark.parametrize("id", ["1", 2, -1, 0, 1.5, True, None, [1], {"id": 1}], ids=str)
def test_an_answer_under_another_id_is_ignored(speak: Speak, folders: dict[str, Path], id: Any) -> None:
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER)
    request = client.asked("roots/list")
    assert request["id"] == 1
    client.wire.send({"jsonrpc": "2.0", "id": id, "result": naming(folders["red"])})
    client.answer(request, naming(folders["green"]))

    assert shown(client) == [str(folders["green"])]


@pytest.mark.requirement("P-030", "P-029")
def test_ids_of_the_client_and_of_the_server_do_not_meet(speak: Speak, folders: dict[str, Path]) -> None:
    client = speak(capabilities=HAS_ROOTS, ANSWER_SECS=FOR_EVER)
    request = client.asked("roots/list")
    id = client.start_tool("show", id=request["id"])
    client.answer(request, naming(folders["red"]))

    assert text_of(client.wire.response(id)["result"]).endswith(f"\n{folders['red']}")


@pytest.mark.requirement("G-roots")
def test_links_are_resolved_and_each_root_counts_once(speak: Speak, folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folders["red"])
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    red = folders["red"]
    encoded = f"file://{red.parent}/%72ed"
    odd = [f"file://{red}/", f"file:////{red}", encoded, f"file://{red.parent}/blue/../red", f"FILE://LocalHost{red}"]
    client = speak(capabilities=HAS_ROOTS)
    uris = [(tmp_path / "link").as_uri(), *odd, (tmp_path / "loop").as_uri(), folders["blue"].as_uri()]
    client.answer(client.asked("roots/list"), {"roots": [{"uri": uri} for uri in uris]})

    assert shown(client) == [str(red), str(folders["blue"])]


@pytest.mark.requirement("G-roots")
def test_what_cannot_be_a_root_is_left_out(speak: Speak, folders: dict[str, Path], tmp_path: Path) -> None:
    red = str(folders["red"])
    (tmp_path / "two\nlines").mkdir()
    bad = [
        f"https://{red}",
        f"file://example.org{red}",
        f"file://127.0.0.1{red}",
        f"file://localhost:80{red}",
        f"file://user@localhost{red}",
        f"file:{red}",
        f"file:/{red.lstrip('/')}",
        red,
        "",
        "file://",
        "file://localhost",
        "file://red",
        "file:///no/such/directory",
        f"file://{red}?query",
        f"file://{red}#fragment",
        f"file://{red}/%",
        f"file://{red}/%zz",
        f"file://{red}%00",
        f"file://{red}\u0000",
        f"file://{red}/\ud800",
        f"file://{tmp_path}/two%0Alines",
        f"file://{tmp_path}/two\nlines",
        "file:///" + "a/" * MAX_PATH_BYTES,
        f"file://{tmp_path}" + f"/../{tmp_path.name}" * 256,
    ]
    if os.geteuid() != 0:  # root may read everything
        folders["green"].chmod(0)
        bad.append(folders["green"].as_uri())
    client = speak(capabilities=HAS_ROOTS)
    roots = [{"uri": uri} for uri in (*bad, folders["blue"].as_uri())]
    client.answer(client.asked("roots/list"), {"roots": roots})

    assert shown(client) == [str(folders["blue"])]
    assert eventually(lambda: client.wire.stderr.count("ignored the client's root ") == len(bad))


@pytest.mark.requirement("G-roots")
def test_a_root_may_have_bytes_that_are_no_text(speak: Speak, tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    client = speak(capabilities=HAS_ROOTS)
    client.answer(client.asked("roots/list"), {"roots": [{"uri": f"file://{tmp_path}/%FF"}]})
    (root,) = json.loads(text_of(client.call_tool("show")).split("\n")[1])

    assert root["uri"] == f"file://{tmp_path}/%FF"


@pytest.mark.requirement("G-roots")
def test_a_file_may_be_a_root(speak: Speak, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    assert shown(answered(speak, tmp_path / "file")) == [str(tmp_path / "file")]


@pytest.mark.requirement("G-embedding", "G-roots")
def test_files_are_embedded_from_the_roots_of_the_client(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    (folders["red"] / "wanted.txt").write_text("wanted")
    inside = project.write("project.txt", "not in scope any more")
    files = json.dumps([str(folders["red"] / "wanted.txt"), str(inside)])
    project.tool("embed", f"""printf '%s' '{files}' > "$MCP_TOOL_RESOURCES_FILE"; echo done""")
    client = answered(speak, folders["red"])
    blocks = client.call_tool("embed")["content"]

    assert [block["resource"]["text"] for block in blocks if block["type"] == "resource"] == ["wanted"]


@ways.per_call("start")
def test_the_tool_on_the_page_reads_inside_the_roots_only(
    project: ProjectBuilder, speak: Speak, folders: dict[str, Path]
) -> None:
    page = (CHECKOUT / "docs" / "roots.md").read_text(encoding="utf-8")
    project.tool("read", page.partition("```python tools/read.py\n")[2].partition("```")[0])
    (folders["red"] / "x.txt").write_text("inside")
    (folders["blue"] / "x.txt").write_text("outside")
    client = answered(speak, folders["red"])

    assert text_of(client.call_tool("read", {"path": str(folders["red"] / "x.txt")})) == "inside"
    refused = client.error("tools/call", {"name": "read", "arguments": {"path": str(folders["blue"] / "x.txt")}})
    assert (refused["code"], refused["message"]) == (-32602, "path is outside configured MCP roots")
