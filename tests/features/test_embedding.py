"""Files that a tool asks to have embedded in its result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import ways
from tests.support.client import Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

way, project = ways.way, ways.project


def embedded(client: Client, name: str = "embed") -> list[Json]:
    return [block["resource"] for block in client.call_tool(name)["content"] if block["type"] == "resource"]


def tool_that_names(project: ProjectBuilder, content: str) -> None:
    project.write("wanted", content)
    project.tool("embed", 'cat wanted > "$MCP_TOOL_RESOURCES_FILE"; echo done')


@pytest.mark.requirement("G-embedding")
@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28"])
def test_a_named_file_follows_the_output(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    path = project.write("notes.txt", "two\nlines\n")
    tool_that_names(project, json.dumps("notes.txt"))
    text, resource = speak(revision).call_tool("embed")["content"]

    assert text == {"type": "text", "text": "done\n"}
    assert resource == {
        "type": "resource",
        "resource": {"uri": path.as_uri(), "mimeType": "text/plain", "text": "two\nlines\n"},
    }


@pytest.mark.requirement("G-embedding")
@pytest.mark.parametrize(
    "wanted",
    [
        json.dumps([{"path": "a.json", "mimeType": "x/y", "uri": "my:a"}, "b.txt"]),
        "a.json\tx/y\tmy:a\nb.txt\n",
        "a.json\tx/y\tmy:a\nb.txt",
    ],
    ids=["JSON", "TSV", "TSV without a last newline"],
)
def test_files_may_be_named_as_json_or_as_lines(project: ProjectBuilder, speak: Speak, wanted: str) -> None:
    project.write("a.json", "{}")
    path = project.write("b.txt", "b")
    tool_that_names(project, wanted)

    assert embedded(speak()) == [
        {"uri": "my:a", "mimeType": "x/y", "text": "{}"},
        {"uri": path.as_uri(), "mimeType": "text/plain", "text": "b"},
    ]


@pytest.mark.requirement("G-embedding")
@ways.cheapest(how=["link"])
@pytest.mark.parametrize("how", ["absolute", "relative", "link"])
def test_a_file_outside_the_roots_is_left_out(project: ProjectBuilder, speak: Speak, tmp_path: Path, how: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (project.root / "link").symlink_to(secret)
    project.write("fine.txt", "fine")
    wanted = {"absolute": str(secret), "relative": "../secret.txt", "link": "link"}[how]
    tool_that_names(project, json.dumps([wanted, "fine.txt"]))
    client = speak()

    assert [resource["text"] for resource in embedded(client)] == ["fine"]
    assert eventually(lambda: "outside" in client.wire.stderr)


@pytest.mark.requirement("G-embedding")
def test_a_configured_root_may_be_read(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("data")
    tool_that_names(project, json.dumps(str(tmp_path / "data" / "x.txt")))

    assert [resource["text"] for resource in embedded(speak(roots=tmp_path / "data"))] == ["data"]


@pytest.mark.requirement("G-embedding")
def test_a_failed_tool_embeds_nothing(project: ProjectBuilder, speak: Speak) -> None:
    project.write("notes.txt", "x")
    project.tool("embed", 'echo \'"notes.txt"\' > "$MCP_TOOL_RESOURCES_FILE"; exit 1')

    assert embedded(speak()) == []


@pytest.mark.requirement("G-embedding")
@ways.cheapest(how=["linked"], name=[".env"])
@pytest.mark.parametrize("how", ["named", "linked", "absolute", "by a detour"])
@pytest.mark.parametrize("name", [".env", "server.d/env", ".git/config", "data/.cache/x"])
def test_what_is_never_served_is_not_embedded_either(
    project: ProjectBuilder, speak: Speak, name: str, how: str
) -> None:
    """A script that embeds what its caller names gave away what resources/read refuses."""
    project.write(name, "TOKEN=hush\n").chmod(0o644)
    (project.root / "link").symlink_to(name)
    path = {
        "named": name,
        "linked": "link",
        "absolute": str(project.root / name),
        "by a detour": f"tools/../tools/../{name}",
    }[how]
    tool_that_names(project, json.dumps([path]))
    client = speak()

    assert embedded(client) == []
    eventually(lambda: "is outside the roots, or private" in client.wire.stderr)


@pytest.mark.requirement("G-embedding")
def test_more_files_than_anybody_reads_are_left_out_with_one_warning(project: ProjectBuilder, speak: Speak) -> None:
    project.write("a.txt", "a")
    tool_that_names(project, json.dumps(["a.txt"] * 5000))
    client = speak()

    assert len(embedded(client)) == 256
    eventually(lambda: "only 256 resources are embedded" in client.wire.stderr)
    assert client.wire.stderr.count("embedded") == 1


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-embedding")
def test_others_are_answered_while_files_are_embedded(project: ProjectBuilder, speak: Speak) -> None:
    """Ten megabytes of odd bytes, and hundreds of files, held up everybody."""
    (project.root / "odd").write_bytes(b"\x01\x02" * 4_000_000)
    project.write("a.txt", "a")
    project.write("wanted", json.dumps(["a.txt"] * 200 + ["odd"] * 3))
    project.tool("embed", 'cp wanted "$MCP_TOOL_RESOURCES_FILE"; touch written')
    client = speak(LEAST_RESPONSE_BYTES=1 << 30)
    id = client.start_tool("embed")
    eventually(lambda: (project.root / "written").exists())
    while not any(message.get("id") == id for message in client.wire.seen):
        client.request("ping")

    answers = [message["id"] for message in client.wire.seen if "id" in message]
    assert answers.index(id) > answers.index(id + 1) + 2
