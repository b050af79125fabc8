"""Skills over the wire: `skills/list` and `skills/get`, files as resources, folders, changes, and clients that know
nothing of skills."""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, HANDSHAKE_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.subscribing import listen
from tests.support.wire import MODERN, Start, Wire

EXTENSION = "io.modelcontextprotocol/skills"
LOGO = b"\x89PNG\r\n\x1a\n\0\xff"


@pytest.fixture
def skilled(project: ProjectBuilder) -> ProjectBuilder:
    """A project with the skill `refunds`, which has files of several kinds, and the skill `greetings`."""
    project.skill("refunds", "Read [the rules](references/rules for all.md).\n", license="MIT", metadata={"v": 1.5})
    project.write("skills/refunds/references/rules for all.md", "# Rules\r\n")
    project.write("skills/refunds/scripts/count.py", "print(1)\n")
    (project.root / "skills/refunds/empty").mkdir()
    (project.root / "skills/refunds/logo.png").write_bytes(LOGO)
    project.skill("greetings")
    return project


def content_of(client: Client, uri: str) -> bytes:
    [contents] = client.result("resources/read", {"uri": uri})["contents"]
    return contents["text"].encode() if "text" in contents else b64decode(contents["blob"])


def types_in(client: Client, uri: str) -> dict[str, str]:
    found = client.result("resources/directory/read", {"uri": uri})
    return {each["name"]: each["mimeType"] for each in found["resources"]}


@pytest.mark.requirement("S-01")
def test_a_project_with_skills_declares_them_to_stateless_clients_only(skilled: ProjectBuilder, wire: Wire) -> None:
    capabilities = wire.modern("server/discover")["result"]["capabilities"]

    assert "resources" in capabilities and capabilities["extensions"][EXTENSION] == {"directoryRead": True}
    assert EXTENSION not in wire.handshake()["capabilities"].get("extensions", {})


@pytest.mark.requirement("S-01")
def test_without_a_folder_skills_do_not_exist(wire: Wire) -> None:
    assert EXTENSION not in wire.modern("server/discover")["result"]["capabilities"]["extensions"]
    wire.handshake()
    for method in ("skills/list", "skills/get", "resources/directory/read"):
        assert wire.modern(method, {"uri": "skill://x/SKILL.md"})["error"]["code"] == -32601
        assert wire.error(method, {"uri": "skill://x/SKILL.md"})["code"] == -32601


@pytest.mark.requirement("S-02", "S-03", "S-04", "S-05", "S-06")
def test_an_entry_has_the_front_matter_and_every_file(skilled: ProjectBuilder, speak: Speak) -> None:
    client = speak(MODERN)

    _, refunds = client.result("skills/list")["skills"]

    assert client.result("skills/get", {"uri": "skill://refunds/SKILL.md"})["skill"] == refunds
    expected = {"name": "refunds", "description": "What refunds is for.", "license": "MIT", "metadata": {"v": 1.5}}
    assert refunds["frontmatter"] == expected
    paths = ("SKILL.md", "logo.png", "references/rules%20for%20all.md", "scripts/count.py")
    assert [each["uri"] for each in refunds["resources"]] == [f"skill://refunds/{path}" for path in paths]
    for each in refunds["resources"]:
        content = content_of(client, each["uri"])
        assert (each["size"], each["digest"]) == (len(content), "sha256:" + hashlib.sha256(content).hexdigest())


@pytest.mark.requirement("S-07", "S-09")
def test_what_is_no_skill_and_no_folder_is_refused(skilled: ProjectBuilder, speak: Speak) -> None:
    client = speak(MODERN)

    for uri in ("skill://no/SKILL.md", "skill://refunds", "skill://refunds/logo.png", "", 1, None):
        assert client.error("skills/get", {"uri": uri})["code"] == -32602
    for uri in ("skill://refunds/SKILL.md", "skill://refunds/no", "skill://refunds/", "skill://", 7):
        assert client.error("resources/directory/read", {"uri": uri})["code"] == -32602


@pytest.mark.requirement("S-08")
def test_a_folder_is_read_level_by_level(skilled: ProjectBuilder, speak: Speak) -> None:
    client = speak(MODERN)

    folders = dict.fromkeys(("empty", "references", "scripts"), "inode/directory")
    assert types_in(client, "skill://refunds") == {**folders, "refunds": "text/markdown", "logo.png": "image/png"}
    assert types_in(client, "skill://refunds/references") == {"rules for all.md": "text/markdown"}
    assert types_in(client, "skill://refunds/empty") == {}


@pytest.mark.requirement("S-10")
@pytest.mark.parametrize(
    ("method", "params", "member"),
    [("skills/list", {}, "skills"), ("resources/directory/read", {"uri": "skill://refunds"}, "resources")],
)
def test_lists_have_pages(skilled: ProjectBuilder, speak: Speak, method: str, params: Any, member: str) -> None:
    whole = speak(MODERN).result(method, params)[member]
    client = speak(MODERN, page_size=1)
    pages: list[dict[str, Any]] = [client.result(method, params)]
    while "nextCursor" in pages[-1]:
        pages.append(client.result(method, {**params, "cursor": pages[-1]["nextCursor"]}))

    assert [page[member] for page in pages] == [[each] for each in whole]
    for cursor in ("x", client.result("resources/list")["nextCursor"]):
        assert client.error(method, {**params, "cursor": cursor})["code"] == -32602


@pytest.mark.requirement("S-11")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_every_client_finds_the_files_among_the_resources(skilled: ProjectBuilder, speak: Speak, revision: str) -> None:
    client = speak(revision)

    listed = {each["uri"]: each for each in client.result("resources/list")["resources"]}

    main = listed["skill://refunds/SKILL.md"]
    assert (main["name"], main["description"], main["mimeType"]) == ("refunds", "What refunds is for.", "text/markdown")
    assert content_of(client, "skill://refunds/logo.png") == LOGO
    for path in ("no.md", "../greetings/SKILL.md", "%2e%2e/greetings/SKILL.md", "references"):
        error = client.error("resources/read", {"uri": f"skill://refunds/{path}"})
        assert error["code"] == (-32602 if revision == MODERN else -32002)


@pytest.mark.requirement("S-04")
def test_links_fifos_hidden_files_and_bad_skills_are_not_served(skilled: ProjectBuilder, speak: Speak) -> None:
    skill = skilled.root / "skills" / "refunds"
    (skill / "out.md").symlink_to(skilled.write("secret.txt", "secret"))
    (skill / "in.md").symlink_to(skill / "SKILL.md")
    (skill / "folder").symlink_to(skilled.root / "tools")
    os.mkfifo(skill / "pipe.md")
    skilled.write("skills/refunds/.env", "KEY=1")
    skilled.write("skills/refunds/.git/config", "x")
    skilled.skill("twins", name="other")
    client = speak(MODERN)

    assert [len(each["resources"]) for each in client.result("skills/list")["skills"]] == [1, 4]
    for name in ("out.md", "in.md", "pipe.md", ".env", ".git/config"):
        assert client.error("resources/read", {"uri": f"skill://refunds/{name}"})["code"] == -32602
    client.wire.stop()
    assert "skills/twins/SKILL.md: name must be twins, as its folder" in client.wire.stderr


def test_a_change_in_a_file_is_a_change_of_the_list(skilled: ProjectBuilder, wire: Wire) -> None:
    wire.handshake()
    before = wire.modern("skills/list")["result"]["skills"][1]["resources"]
    skilled.write("skills/refunds/scripts/count.py", "print(2)\n")

    wire.notice("notifications/resources/list_changed")

    after = wire.modern("skills/get", {"uri": "skill://refunds/SKILL.md"})["result"]["skill"]["resources"]
    assert [one["uri"][-8:] for one, other in zip(before, after, strict=True) if one != other] == ["count.py"]


def test_a_folder_may_come_and_go(project: ProjectBuilder, wire: Wire) -> None:
    listen(wire, [], resourcesListChanged=True)
    assert wire.modern("resources/list")["result"]["resources"] == []
    project.skill("late")

    wire.notice("notifications/resources/list_changed")

    assert EXTENSION in wire.modern("server/discover")["result"]["capabilities"]["extensions"]
    assert wire.modern("skills/list")["result"]["skills"][0]["uri"] == "skill://late/SKILL.md"
    (project.root / "skills").rename(project.root / "later")
    assert wire.modern("skills/list")["error"]["code"] == -32601


@pytest.mark.parametrize("revision", [HANDSHAKE_REVISIONS[0], MODERN])
def test_skills_are_prompts_if_the_operator_wants_that(skilled: ProjectBuilder, speak: Speak, revision: str) -> None:
    skilled.prompt("greetings.md", "A prompt of the same name comes first")
    client = speak(revision, skills_as_prompts="true")

    listed = {each["name"]: each for each in client.result("prompts/list")["prompts"]}

    assert listed["refunds"]["description"] == "What refunds is for."
    [message] = client.get_prompt("refunds")["messages"]
    assert message["content"] == {"type": "text", "text": skilled.read("skills/refunds/SKILL.md")}
    assert client.get_prompt("greetings")["messages"][0]["content"]["text"].startswith("A prompt")
    assert "refunds" not in [each["name"] for each in speak(revision).result("prompts/list")["prompts"]]


def test_a_static_registry_serves_skills(skilled: ProjectBuilder, speak: Speak) -> None:
    before = speak(MODERN, skills_as_prompts="true").result("skills/list")["skills"]  # writes the registry
    client = speak(MODERN, static_registry="true")

    assert client.result("skills/list")["skills"] == before
    skilled.skill("later")
    assert client.result("skills/list")["skills"] == before, "it never looks again"
    assert content_of(client, "skill://refunds/logo.png") == LOGO


def test_files_are_served_up_to_the_limit_also_from_a_hidden_folder(project: ProjectBuilder, speak: Speak) -> None:
    main = project.skill("large").stat().st_size
    (project.root / "skills/large/data.bin").write_bytes(b"\0" * ((16 << 20) - main))
    (project.root / "skills").rename(project.root / ".skills")
    client = speak(MODERN, skills_dir=".skills")

    assert len(client.result("skills/list")["skills"][0]["resources"]) == 2
    assert len(content_of(client, "skill://large/data.bin")) == (16 << 20) - main


def test_a_project_without_skills_loads_nothing_for_them(project: ProjectBuilder, start: Start) -> None:
    wire = start(env={"PYTHONPROFILEIMPORTTIME": "1"}, wire={"is_fresh": True})
    wire.handshake()
    wire.result("resources/list")
    wire.stop()

    assert "mcpgreen.catalog.resources" in wire.stderr
    assert "skills" not in wire.stderr
