"""Resources over the wire: what is listed, and what reading gives. Scripts that provide are in `test_providers`."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, HANDSHAKE_REVISIONS, Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN

MIB = 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
ICON = {"src": "data:image/png;base64,AAAA", "mimeType": "image/png", "sizes": ["16x16"]}
FULL: Json = {
    "title": "Full",
    "description": "has everything",
    "mimeType": "text/x-full",
    "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2025-02-01T10:00:00Z"},
    "icons": [ICON],
    "_meta": {"com.example/x": 1},
}


def is_since(first: str, revision: str) -> bool:
    return ALL_REVISIONS.index(revision) >= ALL_REVISIONS.index(first)


def listed(client: Client) -> dict[str, Json]:
    return {each["name"]: each for each in client.result("resources/list")["resources"]}


def read(client: Client, uri: str, **options: Any) -> Json:
    """The one content of a resource."""
    (contents,) = client.result("resources/read", {"uri": uri}, **options)["contents"]
    return contents


def refused(client: Client, uri: Any) -> Json:
    return client.error("resources/read", {"uri": uri})


def fitted(fields: Json, revision: str) -> Json:
    """What a revision sees of a description."""
    kept = {key: fields[key] for key in ("description", "mimeType", "annotations")}
    if is_since("2025-06-18", revision):
        kept |= {key: fields[key] for key in ("title", "_meta")}
    else:
        kept["annotations"] = {"audience": ["user"], "priority": 0.5}
    return kept | ({"icons": fields["icons"]} if is_since("2025-11-25", revision) else {})


@pytest.mark.requirement("G-resource-lists", "P-043", "P-150")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_resource_shows_exactly_what_its_revision_knows(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    path = project.resource("full.md", "12345", **FULL)

    assert listed(speak(revision)) == {
        "full": {"name": "full", "uri": path.as_uri(), "size": 5, **fitted(FULL, revision)}
    }


@pytest.mark.requirement("G-resource-lists", "P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_template_shows_exactly_what_its_revision_knows(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.described("full", uriTemplate="full://{x}", size=3, arguments={"x": {"type": "string"}}, **FULL)
    result = speak(revision).result("resources/templates/list")

    assert result["resourceTemplates"] == [
        {"name": "full", "uriTemplate": "full://{x}", **fitted(FULL, revision)},
    ]


@pytest.mark.requirement("G-resource-lists")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_project_without_resources_has_empty_lists(speak: Speak, revision: str) -> None:
    client = speak(revision)

    assert client.result("resources/list")["resources"] == []
    assert client.result("resources/templates/list")["resourceTemplates"] == []


@pytest.mark.requirement("G-resource-lists")
def test_equal_names_and_bad_descriptions_do_not_break_the_list(project: ProjectBuilder, speak: Speak) -> None:
    for path in ("one/README.md", "two/README.md"):
        project.resource(path, "x")
    project.resource("bad.txt", "x", title=3)
    client = speak()

    uris = [each["uri"] for each in client.result("resources/list")["resources"]]

    assert [uri.rpartition("/resources/")[2] for uri in uris] == ["one/README.md", "two/README.md"]
    eventually(lambda: "resources/bad.txt.meta.json: title must be a string" in client.wire.stderr)


@pytest.mark.requirement("G-resource-lists")
def test_the_lists_are_written_down_for_other_programs(project: ProjectBuilder, speak: Speak) -> None:
    project.resource("guide.md", "# Guide", description="a guide")
    project.described("weather", uriTemplate="weather://{city}", description="of a city")
    client = speak()
    client.result("resources/list")
    eventually(lambda: (project.root / ".registry/ui-resources.json").exists())  # the last of them

    written = {name: json.loads(project.read(f".registry/{name}.json")) for name in ("resources", "resource-templates")}

    for envelope in written.values():
        assert (envelope["format_version"], envelope["version"], envelope["total"]) == (1, 1, 1)
        assert {"generatedAt", "hash"} <= set(envelope)
    (resource,), (template,) = written["resources"]["items"], written["resource-templates"]["items"]
    assert resource == {
        "name": "guide",
        "description": "a guide",
        "uri": (project.root / "resources/guide.md").as_uri(),
        "mimeType": "text/markdown",
        "size": 7,
        "provider": "file",
        "path": "guide.md",
    }
    assert template == {
        "name": "weather",
        "description": "of a city",
        "uriTemplate": "weather://{city}",
        "provider": "weather",
        "path": "weather.meta.json",
    }


@pytest.mark.requirement("P-122", "P-043")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_text_is_sent_as_text_with_what_the_revision_knows(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    path = project.resource("full.md", "Grüße\n\n", **FULL)
    contents = read(speak(revision), path.as_uri())

    expected: Json = {"uri": path.as_uri(), "mimeType": "text/x-full", "text": "Grüße\n\n"}
    assert contents == expected | ({"_meta": FULL["_meta"]} if is_since("2025-06-18", revision) else {})


@pytest.mark.requirement("P-122")
@pytest.mark.parametrize(
    ("name", "content", "mime"),
    [
        ("picture.png", PNG, "image/png"),
        ("picture", PNG, "image/png"),
        ("nul.txt", b"a\0b", "text/plain"),
        ("latin.txt", b"caf\xe9 and more", "text/plain"),
        ("late.txt", b"x" * 300_000 + b"\xff", "text/plain"),
        ("cut.md", "ü".encode()[:1], "text/markdown"),
        ("utf16.txt", "text".encode("utf-16"), "text/plain"),
        ("binary", b"\x01\x02\x00", "application/octet-stream"),
    ],
)
def test_all_other_content_is_a_blob_whatever_its_name_says(
    project: ProjectBuilder, speak: Speak, name: str, content: bytes, mime: str
) -> None:
    path = project.resource(name, content)
    client = speak()
    contents = read(client, path.as_uri())

    assert set(contents) == {"uri", "mimeType", "blob"}
    assert base64.b64decode(contents["blob"], validate=True) == content
    assert contents["mimeType"] == mime


@pytest.mark.requirement("P-122")
@pytest.mark.parametrize(
    ("name", "content", "mime"),
    [
        ("empty", "", "text/plain"),
        ("empty.json", "", "application/json"),
        ("plain", "words", "text/plain"),
        ("page.html", "<p>", "text/html"),
        ("odd.unknown", "words", "text/plain"),
        ("wide.txt", "€" * 50_000 + "\u2028\u0001\x7f\U0001f600", "text/plain"),
    ],
)
def test_text_arrives_unchanged(project: ProjectBuilder, speak: Speak, name: str, content: str, mime: str) -> None:
    path = project.resource(name, content)

    assert read(speak(), path.as_uri()) == {"uri": path.as_uri(), "mimeType": mime, "text": content}


@pytest.mark.requirement("P-122")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_file_is_read_by_the_address_that_its_author_gave_it(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.resource("guide.md", "# Guide", uri="docs://guide")

    assert read(speak(revision), "docs://guide") == {
        "uri": "docs://guide",
        "mimeType": "text/markdown",
        "text": "# Guide",
    }


@pytest.mark.requirement("P-122")
def test_a_relative_address_is_meant_below_the_project(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    project.resource("greeting.txt", "Hello", uri="file://./resources/greeting.txt", mimeType="text/x-greeting")
    client = speak(wire={"cwd": tmp_path})

    assert listed(client)["greeting"]["uri"] == "file://./resources/greeting.txt"
    assert read(client, "file://./resources/greeting.txt")["text"] == "Hello"


@pytest.mark.requirement("P-122")
def test_what_is_declared_holds_for_every_way_to_write_the_address_of_a_file(
    project: ProjectBuilder, speak: Speak
) -> None:
    path = project.resource("my notes.txt", "Hello", mimeType="text/x-notes")
    client = speak()

    for uri in (path.as_uri(), "file://./resources/my%20notes.txt", f"file://localhost{path.as_uri()[7:]}"):
        assert read(client, uri) == {"uri": uri, "mimeType": "text/x-notes", "text": "Hello"}


@pytest.mark.requirement("P-122")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
@pytest.mark.parametrize("name", ["my notes.txt", "caf\u00e9.txt", "a{b}|c.txt", "100%.txt"])
def test_a_file_is_read_also_where_its_name_is_not_encoded(
    project: ProjectBuilder, speak: Speak, revision: str, name: str
) -> None:
    """Clients of mcp-bash put "file://" before a path; what they sent is what they get back."""
    path = project.resource(name, "Hello", mimeType="text/x-notes")
    client = speak(revision)

    for uri in (f"file://{path}", f"file://./resources/{name}"):
        assert read(client, uri) == {"uri": uri, "mimeType": "text/x-notes", "text": "Hello"}
    assert client.error("resources/read", {"uri": f"file://{path}x"})["code"] in (-32002, -32602)


def test_an_unlisted_file_is_read_inside_the_allowed_directories(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/extra.txt").write_text("extra")
    project.write("README.md", "of the project")
    project.write("resources/.hidden", "hidden")
    client = speak(resources_roots=str(tmp_path / "more"))

    assert read(client, (tmp_path / "more/extra.txt").as_uri())["text"] == "extra"
    assert read(client, (project.root / "README.md").as_uri())["text"] == "of the project"
    refused = client.error("resources/read", {"uri": (project.root / "resources/.hidden").as_uri()})
    assert refused["message"] == "Resource outside allowed roots"


def test_a_resource_can_be_read_by_its_name(project: ProjectBuilder, speak: Speak) -> None:
    path = project.resource("guide.md", "# Guide")
    client = speak()
    (contents,) = client.result("resources/read", {"name": "guide"})["contents"]

    assert (contents["uri"], contents["text"]) == (path.as_uri(), "# Guide")
    assert client.error("resources/read", {"name": "other"})["code"] == -32002


@pytest.mark.requirement("G-resource-errors", "P-016", "P-011")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_what_does_not_exist_is_not_found(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    client = speak(revision)
    directory = project.root / "resources"
    directory.mkdir()

    missing = (directory / "missing.txt").as_uri()
    for uri in ("nothing://here", missing, directory.as_uri(), "ui://test-project/missing"):
        assert refused(client, uri) == {
            "code": -32602 if revision == MODERN else -32002,
            "message": "Resource not found",
            "data": {"uri": uri},
        }


@pytest.mark.requirement("P-120")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
@pytest.mark.parametrize(
    "uri",
    [
        "",
        None,
        7,
        {"x": 1},
        "no-scheme",
        "/etc/passwd",
        "../x",
        "docs://{x}",
        "docs://a%zz",
        "docs://a%00",
        "docs://a\x00b",
        "docs://ü",
        "docs://\ud800",
        "docs://a\nb",
        "docs://a#b#c",
        "docs://" + "x" * 10_000,
        "1x://a",
        "file://./../x",
    ],
    ids=lambda uri: repr(uri)[:30],
)
def test_what_is_no_uri_is_refused(shared_speak: Speak, revision: str, uri: Any) -> None:
    assert refused(shared_speak(revision), uri)["code"] == -32602


def test_a_request_must_say_what_to_read(speak: Speak) -> None:
    assert speak().error("resources/read", {}) == {"code": -32602, "message": "Resource name or uri required"}


@pytest.mark.requirement("G-resource-errors")
@pytest.mark.parametrize("revision", [HANDSHAKE_REVISIONS[-1], MODERN])
def test_an_unknown_provider_is_an_error_of_the_server(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    project.described("odd", uri="odd://x", provider="unheard-of")
    error = refused(speak(revision), "odd://x")

    assert error == {"code": -32603, "message": "Unsupported resource provider 'unheard-of'"}


def bytes_read_by(client: Client) -> int:
    return int(Path(f"/proc/{client.wire.process.pid}/io").read_text().split("rchar:")[1].split()[0])


@pytest.mark.requirement("G-resource-size")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_ten_megabytes_of_text_are_served_whole(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    text = ("0123456789abcdef" * 4 + '"ü\n') * (10 * MIB // 68)
    path = project.resource("large.txt", text + "x" * (10 * MIB - len(text.encode())))
    client = speak(revision)

    assert path.stat().st_size == 10 * MIB
    assert read(client, path.as_uri())["text"] == path.read_text(encoding="utf-8")


@pytest.mark.requirement("G-resource-size")
@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs /proc")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_a_gigabyte_is_refused_without_being_read(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    path = project.resource("huge.txt", "")
    os.truncate(path, 1024 * MIB)
    client = speak(revision)
    assert listed(client)["huge"]["size"] == 1024 * MIB
    before = bytes_read_by(client)
    error = refused(client, path.as_uri())

    assert error == {"code": -32603, "message": f"Resource content exceeds {10 * MIB} bytes"}
    assert bytes_read_by(client) - before < MIB


@pytest.mark.requirement("G-resource-size")
def test_the_limit_is_exact_and_can_be_set(project: ProjectBuilder, speak: Speak) -> None:
    fits, over = project.resource("fits.txt", "x" * 1000), project.resource("over.txt", "x" * 1001)
    client = speak(max_resource_bytes=1000)

    assert len(read(client, fits.as_uri())["text"]) == 1000
    assert refused(client, over.as_uri())["message"] == "Resource content exceeds 1000 bytes"


def test_the_roots_of_a_client_open_further_directories(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    secret = tmp_path / "theirs/notes.txt"
    secret.write_text("theirs")
    client = speak(capabilities={"roots": {}})
    waiting = client.start("resources/read", {"uri": secret.as_uri()})
    client.answer(client.asked("roots/list"), {"roots": [{"uri": (tmp_path / "theirs").as_uri()}]})

    assert client.wire.response(waiting)["result"]["contents"][0]["text"] == "theirs"
    assert refused(speak(), secret.as_uri())["message"] == "Resource outside allowed roots"


def test_the_roots_of_a_client_take_the_place_of_the_project(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    """What the client put in scope counts, not what is configured; resources/ is always there."""
    (tmp_path / "theirs").mkdir()
    path = project.resource("guide.md", "# Guide")
    client = speak(capabilities={"roots": {}})
    client.answer(client.asked("roots/list"), {"roots": [{"uri": (tmp_path / "theirs").as_uri()}]})

    assert refused(client, (project.root / "server.d").as_uri())["code"] == -32603
    assert refused(client, project.write("notes.txt", "x").as_uri())["message"] == "Resource outside allowed roots"
    assert read(client, path.as_uri())["text"] == "# Guide"


@pytest.mark.requirement("P-025")
@pytest.mark.parametrize("revision", ["2024-11-05", MODERN])
def test_reading_files_does_not_wait_for_slow_tools(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    path = project.resource("guide.md", "# Guide")
    project.tool("slow", 'touch started; until [ -e "go" ]; do sleep 0.02; done; echo done')
    client = speak(revision, max_concurrent_requests=1)
    tools = [client.start_tool("slow") for _ in range(3)]
    eventually((project.root / "started").exists)
    reads = [client.start("resources/read", {"uri": path.as_uri()}) for _ in range(100)]

    for each in reads:
        assert client.wire.response(each)["result"]["contents"][0]["text"] == "# Guide"
    assert not any(message.get("id") in tools for message in client.wire.seen)
    (project.root / "go").touch()
    for tool in tools:
        assert "result" in client.wire.response(tool)
