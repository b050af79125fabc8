"""What becomes of each item that a project registers by hand: how it is read, and what is said of one that is not."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.item_kinds import SOURCE_OF
from mcpgreen.errors import InternalError
from tests.catalog.test_registration import Desk

Json = dict[str, Any]

SOURCE = "server.d/register.json"


class Reading:
    """A catalog that reads what is registered, and what it says of it."""

    def __init__(self, desk: Desk, content: Json | None = None, **values: Any) -> None:
        if content is not None:
            desk.write_json({"version": 1, **content})
        self.told: list[str] = []
        self.hints: list[str] = []
        self.changed: list[str] = []
        self.catalog: Catalog = desk.catalog(**values)
        self.catalog.on_warning = self.told.append
        self.catalog.on_hint = self.hints.append
        self.catalog.on_change = lambda source, total, earlier: self.changed.append(source)

    def items(self, kind: str) -> list[Any]:
        self.catalog.mark_stale()
        if not self.catalog.is_current(SOURCE_OF[kind]):
            self.catalog.refresh(SOURCE_OF[kind])
        return list(self.catalog.snapshot(kind).items)

    def names(self, kind: str) -> list[str]:
        return [item.name for item in self.items(kind)]

    def listed(self, kind: str) -> list[Json]:
        return [item.definition for item in self.items(kind)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A project with something of each kind on disk."""
    desk = Desk(tmp_path / "project")
    desk.tree.tool("found")
    desk.tree.write("resources/found.txt", "found")
    desk.tree.write("resources/files.meta.json", '{"name": "files", "uriTemplate": "file:///found/{path}"}')
    desk.tree.write("prompts/found.md", "found {{topic}}")
    return desk


@pytest.mark.parametrize("given", ["absent", "null"])
def test_a_kind_that_is_not_named_is_found_on_disk(desk: Desk, given: str) -> None:
    kinds = ("tools", "resources", "resourceTemplates", "prompts", "completions")
    reading = Reading(desk, {} if given == "absent" else dict.fromkeys(kinds))

    assert {kind: reading.names(kind) for kind in kinds[:4]} == {
        "tools": ["found"],
        "resources": ["found"],
        "resourceTemplates": ["files"],
        "prompts": ["found"],
    }
    assert reading.catalog.completions() == {}


@pytest.mark.parametrize("kind", ["tools", "resources", "resourceTemplates", "prompts"])
def test_an_empty_array_is_an_empty_list_and_concerns_no_other_kind(desk: Desk, kind: str) -> None:
    reading = Reading(desk, {kind: []})

    assert {each for each in ("tools", "resources", "resourceTemplates", "prompts") if not reading.names(each)} == {
        kind
    }


def test_items_are_listed_in_the_order_in_which_they_are_written(desk: Desk) -> None:
    """Resources and prompts were sorted, tools not."""
    reading = Reading(
        desk,
        {
            "tools": [{"name": name, "path": "found/found.sh"} for name in ("z", "a")],
            "resources": [{"name": name, "uri": f"echo://{name}"} for name in ("z", "a")],
            "prompts": [{"name": name, "path": "found.md"} for name in ("z", "a")],
        },
    )

    assert [reading.names(kind) for kind in ("tools", "resources", "prompts")] == [["z", "a"]] * 3


def test_a_tool_needs_no_more_than_a_name_and_a_path(desk: Desk) -> None:
    (tool,) = Reading(desk, {"tools": [{"name": "mine", "path": "found/found.sh"}]}).items("tools")

    assert tool.definition == {"name": "mine", "inputSchema": {"type": "object", "properties": {}}}


def test_a_resource_keeps_what_it_says_of_itself(desk: Desk) -> None:
    item = {
        "name": "r",
        "uri": "note:1",
        "provider": "echo",
        "title": "R",
        "description": "d",
        "mimeType": "text/markdown",
        "annotations": {"priority": 1},
        "_meta": {"x": 1},
    }
    (resource,) = Reading(desk, {"resources": [item]}).items("resources")

    assert resource.definition == item
    assert resource.mime_type == "text/markdown"


@pytest.mark.parametrize("role", [None, "user", "assistant"])
def test_a_prompt_is_the_user_s_unless_it_says_otherwise(desk: Desk, role: str | None) -> None:
    reading = Reading(desk, {"prompts": [{"name": "p", "path": "found.md", "role": role, "metadata": None}]})
    (prompt,) = reading.items("prompts")

    assert (prompt.role, prompt.relative_path, prompt.is_program) == (role or "user", "found.md", False)
    assert prompt.definition == {"name": "p"}
    assert reading.told == []


def test_a_prompt_may_bring_its_messages_instead_of_a_file(desk: Desk) -> None:
    messages = [{"role": "assistant", "content": "hi"}]
    (prompt,) = Reading(desk, {"prompts": [{"name": "p", "messages": messages}]}).items("prompts")

    assert (prompt.path, prompt.messages) == (None, messages)


def test_a_template_keeps_what_it_says_of_itself(desk: Desk) -> None:
    item = {"name": "t", "uriTemplate": "logs://{date}", "title": "T", "description": "d", "mimeType": "text/plain"}
    templates = Reading(desk, {"resourceTemplates": [{**item, "provider": "echo"}]}).items("resourceTemplates")

    assert [(each.name, each.provider, each.template.variables) for each in templates] == [
        ("files", "file", ("path",)),
        ("t", "echo", ("date",)),
    ]
    assert templates[1].definition == item


def test_icons_are_sought_beside_the_file_or_in_the_directory_of_the_kind(desk: Desk) -> None:
    """Icons of registered prompts, resources and templates were sought below the server's working directory."""
    for place in ("prompts/sub", "prompts", "resources"):
        desk.tree.write(f"{place}/i.png", place)
    desk.tree.write("prompts/sub/p.md", "")
    icons = [{"src": "i.png"}]
    reading = Reading(
        desk,
        {
            "prompts": [
                {"name": "a", "path": "sub/p.md", "icons": icons},
                {"name": "b", "messages": [{"content": "x"}], "icons": icons},
            ],
            "resources": [{"name": "r", "uri": "echo://r", "icons": icons}],
            "resourceTemplates": [{"name": "t", "uriTemplate": "echo://{t}", "icons": icons}],
        },
    )
    found = [*reading.listed("prompts"), *reading.listed("resources"), reading.listed("resourceTemplates")[-1]]

    assert [base64.b64decode(each["icons"][0]["src"].partition(",")[2]) for each in found] == [
        b"prompts/sub",
        b"prompts",
        b"resources",
        b"resources",
    ]
    assert reading.told == []


def test_a_completion_has_its_file_and_its_time(desk: Desk) -> None:
    desk.tree.write("c/c.sh", "")
    items = [{"name": "slow", "path": "c/c.sh", "timeoutSecs": 2.5}, {"name": "plain", "path": "c/c.sh"}]
    completions = Reading(desk, {"completions": items}).catalog.completions()
    path = str(desk.tree.root / "c" / "c.sh")

    assert {name: tuple(each) for name, each in completions.items()} == {"slow": (path, 2.5), "plain": (path, None)}


@pytest.mark.parametrize(
    ("kind", "what", "fields", "reason"),
    [
        ("resources", "resource", {}, "uri: it is missing"),
        ("resources", "resource", {"uri": "a:b", "mimeType": []}, "mimeType must be a string, found an array"),
        ("resourceTemplates", "resource template", {}, "uriTemplate is missing"),
        ("resourceTemplates", "resource template", {"uriTemplate": None}, "uriTemplate is missing"),
        ("resourceTemplates", "resource template", {"uriTemplate": "a:b"}, "uriTemplate: it has no variable"),
        ("prompts", "prompt", {}, "path must be a string that names a file below prompts/"),
        ("prompts", "prompt", {"path": "no.md"}, "there is no file no.md in prompts/"),
        ("prompts", "prompt", {"path": "../tools"}, "path ../tools is outside prompts/"),
        ("prompts", "prompt", {"path": "out.md"}, "path out.md is outside prompts/"),
        ("prompts", "prompt", {"path": "found.md", "arguments": 5}, "arguments must be an array of arguments or a "),
        (
            "tools",
            "tool",
            {"path": "found/found.sh", "name": "a b"},
            "name must be 1 to 128 characters from A-Z a-z 0-9 _ . -",
        ),
        ("tools", "tool", {}, "path must be a string that names a file below tools/"),
        ("tools", "tool", {"path": 5}, "path must be a string that names a file below tools/"),
        ("tools", "tool", {"path": "no.sh"}, "there is no file no.sh in tools/"),
        ("tools", "tool", {"path": "../server.d/register.json"}, "path ../server.d/register.json is outside tools/"),
        ("tools", "tool", {"path": "out.sh"}, "path out.sh is outside tools/"),
        ("tools", "tool", {"path": "/etc/hostname"}, "path /etc/hostname is outside tools/"),
        ("tools", "tool", {"path": "."}, "path . is not a file"),
        ("tools", "tool", {"path": "data"}, "tools/data is neither executable nor a script (chmod +x)"),
        ("tools", "tool", {"path": "found/found.sh", "inputSchema": []}, "inputSchema must be an object, found an "),
    ],
    ids=str,
)
def test_a_bad_item_is_left_out_and_named_with_the_reason(
    desk: Desk, kind: str, what: str, fields: Json, reason: str
) -> None:
    (desk.tree.root / "prompts" / "out.md").symlink_to("/etc/hostname")
    desk.tree.write("tools/data", "no script")
    (desk.tree.root / "tools" / "out.sh").symlink_to("/bin/true")
    good = {
        "tools": {"path": "found/found.sh"},
        "resources": {"uri": "echo://good"},
        "resourceTemplates": {"uriTemplate": "echo://{good}"},
        "prompts": {"path": "found.md"},
    }
    reading = Reading(desk, {kind: [{"name": "bad", **fields}, {"name": "good", **good[kind]}]})

    assert [name for name in reading.names(kind) if name not in ("files",)] == ["good"]
    (warning,) = reading.told
    assert warning.startswith(f"{SOURCE}: the {what} {fields.get('name', 'bad')} is left out: {reason}")
    assert str(desk.tree.root) not in warning


def test_what_is_only_decoration_is_complained_about_and_the_item_stays(desk: Desk) -> None:
    reading = Reading(
        desk,
        {
            "prompts": [{"name": "p", "path": "found.md", "role": "system"}],
            "resources": [{"name": "r", "uri": "echo://r", "icons": [{"src": "no.png"}], "mimetype": "text/plain"}],
        },
    )

    assert (reading.names("prompts"), reading.names("resources")) == (["p"], ["r"])
    assert sorted(reading.told) == [
        f'{SOURCE}: the prompt p: role must be user or assistant, found "system"; it is treated as user',
        f"{SOURCE}: the resource r: an icon is left out: no.png does not exist",
        f"{SOURCE}: the resource r: mimetype is unknown; did you mean mimeType?",
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "warning"),
    [
        ("tools", {"path": "found/found.sh"}, "the tool same is left out: an earlier one has the name same"),
        ("prompts", {"path": "found.md"}, "the prompt same is left out: an earlier one has the name same"),
        (
            "resourceTemplates",
            {"uriTemplate": "echo://{x}"},
            "the resource template files is left out: an earlier one has the name files",
        ),
        ("resources", {"uri": "echo://x"}, "the resource same is left out: an earlier one has the uri echo://x"),
    ],
)
def test_of_two_that_clients_could_not_tell_apart_the_first_counts(
    desk: Desk, kind: str, fields: Json, warning: str
) -> None:
    """The warnings named two files that were the same one, and not the item."""
    name = "files" if kind == "resourceTemplates" else "same"  # replaces the template on disk
    reading = Reading(desk, {kind: [{"name": name, "title": title, **fields} for title in "ab"]})

    assert [each["title"] for each in reading.listed(kind)] == ["a"]
    assert reading.told == [f"{SOURCE}: {warning}"]


def test_resources_may_share_a_name(desk: Desk) -> None:
    reading = Reading(desk, {"resources": [{"name": "r", "uri": uri} for uri in ("echo://1", "echo://2")]})

    assert reading.names("resources") == ["r", "r"]
    assert reading.told == []


def test_a_name_cannot_forge_a_line_of_the_log(desk: Desk) -> None:
    reading = Reading(desk, {"prompts": [{"name": "p\nmcpgreen: error: x"}]})
    reading.items("prompts")

    (warning,) = reading.told
    assert "\n" not in warning


def test_a_registered_template_replaces_the_found_one_of_its_name(desk: Desk) -> None:
    item = {"name": "files", "uriTemplate": "file:///mine/{path}", "description": "mine"}
    reading = Reading(desk, {"resourceTemplates": [{"name": "zoo", "uriTemplate": "zoo:{x}"}, item]})

    assert reading.listed("resourceTemplates") == [item, {"name": "zoo", "uriTemplate": "zoo:{x}"}]
    assert reading.told == []
    assert reading.hints == [
        f"resources/files.meta.json: {SOURCE} registers a template of the same name, which takes precedence"
    ]


def test_a_found_template_is_not_hidden_by_a_resource_that_is_not_offered(desk: Desk) -> None:
    """Resources were registered, and yet a found template was left out because of a found resource."""
    desk.tree.write("resources/sub/files.txt", "has the name of the template")

    assert Reading(desk).names("resourceTemplates") == []
    assert Reading(desk, {"resources": []}).names("resourceTemplates") == ["files"]
    by_hand = {"resources": [{"name": "files", "uri": "echo://files"}]}
    assert Reading(desk, by_hand).names("resourceTemplates") == []


def test_bad_templates_on_disk_are_told_although_resources_are_registered(desk: Desk) -> None:
    """Nobody heard of them: the warnings went with the resources."""
    desk.tree.write("resources/bad.meta.json", '{"uriTemplate": 5}')
    desk.tree.write("resources/odd.txt", "")
    desk.tree.write("resources/odd.meta.json", '{"mimetype": "text/plain"}')
    reading = Reading(desk, {"resources": []})
    reading.items("resourceTemplates")

    assert reading.told == ["resources/bad.meta.json: uriTemplate must be a string, found 5; the resource is left out"]
    silent = Reading(desk, {"resources": [], "resourceTemplates": []})
    silent.items("resources")
    assert silent.told == []


@pytest.mark.parametrize("content", [None, {"resources": []}, {"resources": [{"name": "r", "uri": "echo://r"}]}])
def test_pages_are_listed_after_the_resources(desk: Desk, content: Json | None) -> None:
    desk.tree.write("ui/page/index.html", "<!doctype html>")
    reading = Reading(desk, content)

    assert reading.names("resources")[-1] == "page"
    assert reading.names("ui") == ["page"]


def test_a_page_that_is_registered_is_listed_once(desk: Desk) -> None:
    """Its address stood twice in the list."""
    desk.tree.write("ui/page/index.html", "<!doctype html>")
    (page,) = Reading(desk).listed("ui")
    item = {"name": "mine", "uri": page["uri"]}
    reading = Reading(desk, {"resources": [item]})

    assert reading.listed("resources") == [{**item, "provider": "ui"}]
    assert reading.names("ui") == ["page"]


def test_what_register_sh_does_wrong_is_told_whatever_it_registers(desk: Desk) -> None:
    """Only a hook that registered tools was told of what was left out."""
    desk.tree.write("server.d/register.sh", "mcp_register_resource '{}'", mode=0o755)
    reading = Reading(desk)
    reading.items("tools")

    assert reading.told == ["server.d/register.sh: an item in resources is left out: name must be a string, found null"]


def test_a_new_mistake_in_register_sh_is_told_although_nothing_else_changes(desk: Desk) -> None:
    script = desk.tree.write("server.d/register.sh", "true", mode=0o755)
    reading = Reading(desk)
    reading.items("tools")
    script.write_text("mcp_register_prompt '['", encoding="utf-8")
    reading.items("tools")

    assert len(reading.told) == 1


def test_register_sh_may_register_a_prompt_by_its_messages(desk: Desk) -> None:
    script = """mcp_register_prompt '{"name": "p", "messages": [{"content": "hi"}]}'"""
    desk.tree.write("server.d/register.sh", script, mode=0o755)

    assert Reading(desk).names("prompts") == ["p"]


def test_completions_say_which_file_is_wrong(desk: Desk) -> None:
    reading = Reading(desk, {"odd": 1})

    with pytest.raises(InternalError) as caught:
        reading.catalog.completions()
    assert caught.value.message == "Unable to load completion registry"
    assert caught.value.data is not None and caught.value.data.startswith(f'{SOURCE}: unknown key "odd"')


def test_mending_is_told_for_the_kinds_that_differ_or_were_refused(desk: Desk) -> None:
    """Every list was said to have changed, although it was the same as before and nobody had been refused."""
    reading = Reading(desk, {"prompts": []})
    kinds = ("tools", "resources", "prompts")
    for kind in kinds:
        reading.items(kind)
    desk.write_json("{")
    for kind in kinds:
        reading.catalog.refresh(kind)
    with pytest.raises(InternalError):
        reading.items("tools")
    desk.write_json({"version": 1})
    for kind in kinds:
        reading.items(kind)

    assert reading.changed == ["tools", "prompts"]


def test_completions_of_a_static_registry_stay_as_they_were(desk: Desk) -> None:
    """They followed the file, while the lists did not."""
    desk.tree.write("c.sh", "")
    reading = Reading(desk, {"completions": [{"name": "c", "path": "c.sh"}]}, watch_files="never")
    assert list(reading.catalog.completions()) == ["c"]
    desk.write_json("{")
    desk.clock.now += 1000

    assert list(reading.catalog.completions()) == ["c"]
    assert reading.names("tools") == ["found"]


def test_a_static_registry_that_began_without_a_registration_stays_without(desk: Desk) -> None:
    reading = Reading(desk, watch_files="never")
    assert reading.names("tools") == ["found"]
    desk.write_json({"version": 1, "prompts": []})
    desk.tree.write("server.d/register.sh", "touch ran", mode=0o755)

    assert reading.names("prompts") == ["found"]
    assert not (desk.tree.root / "ran").exists()


def test_a_static_registry_that_could_not_be_read_can_be_mended(desk: Desk) -> None:
    reading = Reading(desk, {"odd": 1}, watch_files="never")
    with pytest.raises(InternalError):
        reading.items("tools")
    path = desk.write_json({"version": 1, "tools": []})
    os.utime(path)

    assert reading.names("tools") == []
