from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.catalog import Catalog
from mcpgreen.catalog.manual.registration import Registrar, Registration, read_register_json, run_register_sh
from mcpgreen.errors import InternalError, ProjectError
from mcpgreen.running.hooks import HookShell
from mcpgreen.settings.settings import Settings, load
from mcpgreen.text import jsontext
from tests.catalog.trees import TreeBuilder

NOTHING = dict.fromkeys(("tools", "resources", "resourceTemplates", "prompts", "completions"))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A project that registers by hand."""

    def __init__(self, root: Path) -> None:
        self.tree = TreeBuilder(root)
        (root / "server.d").mkdir(mode=0o755)
        self.clock = Clock()

    def settings(self, **values: Any) -> Settings:
        return load({}, {}, {}).with_values(**{"allow_project_hooks": True, **values})

    def shell(self, **values: Any) -> HookShell:
        environ = {"PATH": os.environ["PATH"], "FLAVOUR": "mint", "MCPGREEN_REMOTE_TOKEN": "hush"}
        return HookShell(environ, settings=self.settings(**values), directory=str(self.tree.root))

    def write_json(self, content: Any) -> Path:
        return self.tree.write(
            "server.d/register.json", content if isinstance(content, (str, bytes)) else jsontext.dumps(content)
        )

    def read(self, content: Any, **values: Any) -> Registration:
        self.write_json(content)
        registration = read_register_json(self.tree.project)
        assert registration is not None
        return registration

    def reason(self, content: Any, **values: Any) -> str:
        with pytest.raises(ProjectError) as caught:
            self.read(content, **values)
        return caught.value.reason

    def run(self, script: str, *, mode: int = 0o755, **values: Any) -> Registration | None:
        self.tree.write("server.d/register.sh", script, mode=mode)
        shell = self.shell(**values)
        return run_register_sh(self.tree.project, self.settings(**values), run=shell.run_blocking)

    def items(self, script: str, **values: Any) -> dict[str, Any]:
        registration = self.run(script, **values)
        assert registration is not None
        return registration.items

    def registrar(self, **values: Any) -> Registrar:
        return Registrar(
            self.tree.project, settings=self.settings(**values), shell=self.shell(**values), clock=self.clock
        )

    def catalog(self, **values: Any) -> Catalog:
        return Catalog(
            self.tree.project,
            ttl_secs=5,
            max_bytes=10_000_000,
            clock=self.clock,
            registrar=self.registrar(**values),
            is_static=values.get("watch_files") == "never",
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "project")


def names(catalog: Catalog) -> list[str]:
    catalog.mark_stale()
    if not catalog.is_current("tools"):
        catalog.refresh("tools")
    return [item.name for item in catalog.snapshot("tools").items]


def test_without_a_file_nothing_is_registered(desk: Desk) -> None:
    assert read_register_json(desk.tree.project) is None


def test_a_kind_is_left_to_discovery_unless_it_is_an_array(desk: Desk) -> None:
    content = {"version": 1, "tools": [{"name": "a", "odd": 1}], "prompts": [], "resources": None, "_meta": {"x": 1}}
    registration = desk.read(content)

    assert registration.items == {**NOTHING, "tools": [{"name": "a", "odd": 1}], "prompts": []}
    assert registration.items["tools"] == [{"name": "a", "odd": 1}]
    assert registration.source == "server.d/register.json"


def test_the_hash_tells_contents_apart_and_nothing_else(desk: Desk) -> None:
    first = desk.read('{"version": 1, "tools": []}').hash

    assert desk.read('{"tools":[],"version":1.0}').hash == first
    assert desk.read('{"version": 1}').hash != first


def test_a_completion_names_a_file_of_the_project(desk: Desk) -> None:
    desk.tree.write("completions/c.sh", "")
    item = {"name": "c", "path": "completions/c.sh", "timeoutSecs": 5}

    assert desk.read({"version": 1, "completions": [item]}).items["completions"] == [item]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not valid JSON: Expecting property name enclosed in double quotes, line 1 column 2"),
        (b"\xff", "not valid JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ('{"version": 1, "_meta": {"x": 1e999}}', "not valid JSON"),
        (b'\xef\xbb\xbf{"version": 1}', "it starts with a byte order mark; save it as UTF-8 without one"),
        ([], "must be an object, found an array"),
        ({}, "version must be 1, found null"),
        ({"version": 2}, "version must be 1, found 2"),
        ({"version": "1"}, 'version must be 1, found "1"'),
        ({"version": True}, "version must be 1, found true"),
        ({"version": 1, "tool": []}, 'unknown key "tool"; supported: version, tools, resources, '),
        ({"version": 1, "_meta": []}, "_meta must be an object"),
        ({"version": 1, "tools": {}}, "tools must be an array, found an object"),
        ({"version": 1, "prompts": False}, "prompts must be an array, found false"),
        ({"version": 1, "tools": ["a"]}, 'tools[0] must be an object, found "a"'),
        ({"version": 1, "tools": [{"name": "a"}, {}]}, "tools[1].name must be a string, found null"),
        ({"version": 1, "resources": [{"name": ""}]}, 'resources[0].name must be a string, found ""'),
        ({"version": 1, "completions": [{"name": "a"}]}, "completions[0].path must be a string, found null"),
        ({"version": 1, "completions": [{"name": "a", "path": "no"}]}, 'completions[0].path: there is no file "no"'),
        (
            {"version": 1, "completions": [{"name": "a", "path": "../../../etc/hostname"}]},
            "completions[0].path is outside the project",
        ),
        (
            {"version": 1, "completions": [{"name": "a", "path": "here", "timeoutSecs": 0}]},
            "completions[0].timeoutSecs must be a positive number, found 0",
        ),
        (
            {"version": 1, "completions": [{"name": "a", "path": "here"}] * 2},
            'completions[1]: the name "a" is already taken',
        ),
    ],
    ids=str,
)
def test_a_file_that_is_not_right_in_every_part_is_refused(desk: Desk, content: Any, reason: str) -> None:
    desk.tree.write("here", "")

    assert desk.reason(content).startswith(reason)


def test_a_file_that_is_too_large_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgreen.catalog.manual.registration.MAX_BYTES", 10)
    assert desk.reason({"version": 1}) == "it is larger than 10 bytes"


@pytest.mark.parametrize("place", ["server.d/register.json", "server.d", "."])
def test_a_file_that_others_could_have_written_is_refused(desk: Desk, place: str) -> None:
    desk.write_json({"version": 1})
    path = desk.tree.root / place
    path.chmod(path.stat().st_mode | 0o002)

    with pytest.raises(ProjectError, match=r"it is not trusted: .* can be written to by others"):
        read_register_json(desk.tree.project)


def test_a_linked_file_is_refused(desk: Desk) -> None:
    desk.write_json({"version": 1}).rename(desk.tree.root / "real.json")
    (desk.tree.root / "server.d" / "register.json").symlink_to("../real.json")

    with pytest.raises(ProjectError, match="it is not trusted: it is a symbolic link"):
        read_register_json(desk.tree.project)


TOOL_A, TOOL_B = '{"name":"a","path":"a.sh"}', '{"name":"b","path":"b.sh"}'


@pytest.mark.parametrize("function", ["mcp_register_tool", "mcp_tools_register_manual"])
@pytest.mark.parametrize("end", ["", "return 0", "exit 0", "set -euo pipefail"])
def test_items_come_by_function_sorted_and_the_first_of_each_name(desk: Desk, function: str, end: str) -> None:
    again = '{"name":"a","path":"other.sh"}'
    items = desk.items(f"{function} '{TOOL_B}'\n{function} '{TOOL_A}'\n{function} '{again}'\n{end}")

    assert items == {**NOTHING, "tools": [{"name": "a", "path": "a.sh"}, {"name": "b", "path": "b.sh"}]}


@pytest.mark.parametrize(
    ("kind", "functions", "item"),
    [
        ("resources", "mcp_resources", {"name": "r", "uri": "file:///r"}),
        ("resourceTemplates", "mcp_resources_templates", {"name": "t", "uriTemplate": "x:{y}"}),
        ("prompts", "mcp_prompts", {"name": "p", "path": "p.txt"}),
        ("completions", "mcp_completion", {"name": "c", "path": "c.sh"}),
        ("tools", "mcp_tools", {"name": "t", "path": "t.sh"}),
    ],
)
def test_each_kind_has_its_functions(desk: Desk, kind: str, functions: str, item: Any) -> None:
    desk.tree.write("c.sh", "")
    text = jsontext.dumps(item).decode("ascii")
    script = (
        f"{functions}_manual_begin; {functions}_register_manual '{text}'; {functions}_manual_finalize\n"
        f'{functions}_manual_begin; {functions}_register_manual \'{{"name":"gone","path":"c.sh"}}\'; '
        f"{functions}_manual_abort"
    )

    assert desk.items(script) == {**NOTHING, kind: [item]}


def test_nothing_is_left_to_discovery_if_an_object_is_printed(desk: Desk) -> None:
    items = desk.items(f"""mcp_register_tool '{TOOL_A}'; echo '{{"tools":[{TOOL_B}],"prompts":[{TOOL_B}]}}'""")

    assert items == {
        **{kind: [] for kind in NOTHING},
        "tools": [{"name": "a", "path": "a.sh"}],
        "prompts": [{"name": "b", "path": "b.sh"}],
    }


def test_chatter_beside_functions_does_no_harm(desk: Desk) -> None:
    assert desk.items(f"echo registering; mcp_register_tool '{TOOL_A}'")["tools"] == [{"name": "a", "path": "a.sh"}]


def test_a_script_that_says_nothing_leaves_everything_to_discovery(desk: Desk) -> None:
    assert desk.items("mcp_tools_manual_begin; mcp_tools_manual_finalize") == NOTHING


def test_items_that_lack_something_are_left_out_with_a_warning(desk: Desk) -> None:
    registration = desk.run(
        f"""for item in '{{' '[]' '{{"name":"x"}}' '{{"path":"x"}}' '{{"name":1,"path":"x"}}' '{TOOL_A}'; do
        mcp_register_tool "$item"; done"""
    )

    assert registration is not None
    assert registration.items["tools"] == [{"name": "a", "path": "a.sh"}]
    assert len(registration.warnings) == 5
    assert all(
        text.startswith("server.d/register.sh: an item in tools is left out: ") for text in registration.warnings
    )


def test_it_sees_the_server_s_variables_but_no_secrets(desk: Desk) -> None:
    script = (
        'mcp_register_tool "{\\"name\\":\\"$FLAVOUR${MCPGREEN_REMOTE_TOKEN:-}\\",\\"path\\":\\"$(basename "$PWD")\\"}"'
    )

    assert desk.items(script)["tools"] == [{"name": "mint", "path": "project"}]


def test_it_finds_helpers_for_json(desk: Desk) -> None:
    script = 'mcp_register_tool "$(mcp_json_obj name "$(mcp_json_extract_optional "{}" -r .x dflt)" path a)"'

    assert desk.items(script)["tools"] == [{"name": "dflt", "path": "a"}]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (f"mcp_register_tool '{TOOL_A}'; exit 3", "Manual registration script failed: it exited with status 3"),
        ("return 1", "Manual registration script failed: it exited with status 1"),
        ("echo nonsense", "its output is not a registration: not valid JSON"),
        ("echo '[]'", "its output is not a registration: must be an object, found an array"),
        ("echo '{\"tools\":1}'", "its output is not a registration: tools must be an array, found 1"),
    ],
)
def test_a_script_that_fails_is_an_error(desk: Desk, script: str, reason: str) -> None:
    with pytest.raises(ProjectError) as caught:
        desk.run(script)

    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("script", [f"mcp_register_tool '{TOOL_A}'", "echo '{\"tools\":[]}'"])
def test_a_script_that_registers_too_much_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr("mcpgreen.catalog.manual.registration.MAX_BYTES", 10)
    with pytest.raises(ProjectError) as caught:
        desk.run(script)

    assert caught.value.reason == "Manual registration script failed: it printed more than 10 bytes"


def test_a_script_that_others_could_have_written_is_an_error(desk: Desk) -> None:
    with pytest.raises(ProjectError, match="it is not trusted"):
        desk.run("touch ran", mode=0o777)
    assert not (desk.tree.root / "ran").exists()


@pytest.mark.parametrize(
    ("script", "mode", "values"),
    [("touch ran", 0o755, {"allow_project_hooks": False}), ("touch ran", 0o644, {})],
    ids=["not allowed", "no script"],
)
def test_a_script_that_may_not_run_is_not_run(desk: Desk, script: str, mode: int, values: dict[str, Any]) -> None:
    assert desk.run(script, mode=mode, **values) is None
    assert not (desk.tree.root / "ran").exists()


def test_a_shebang_is_as_good_as_the_executable_bit(desk: Desk) -> None:
    assert desk.run(f"#!/bin/bash\nmcp_register_tool '{TOOL_A}'", mode=0o644) is not None


def test_register_json_comes_before_register_sh(desk: Desk) -> None:
    desk.write_json({"version": 1, "tools": []})
    desk.tree.write("server.d/register.sh", "touch ran", mode=0o755)

    registrar = desk.registrar()
    current = registrar.current()

    assert current is not None and current.source == "server.d/register.json"
    assert not registrar.is_hook_due()
    assert not (desk.tree.root / "ran").exists()


def test_a_bad_register_json_is_not_replaced_by_register_sh(desk: Desk) -> None:
    desk.write_json("{")
    desk.tree.write("server.d/register.sh", "touch ran", mode=0o755)

    with pytest.raises(ProjectError):
        desk.registrar().current()
    assert not (desk.tree.root / "ran").exists()


def test_the_hook_runs_once_until_it_changes(desk: Desk) -> None:
    script = desk.tree.write("server.d/register.sh", f"echo x >> ran; mcp_register_tool '{TOOL_A}'", mode=0o755)
    registrar = desk.registrar()
    for _ in range(3):
        registrar.current()
    assert (desk.tree.root / "ran").read_text() == "x\n"
    assert not registrar.is_hook_due()

    script.write_text(f"mcp_register_tool '{TOOL_B}'", encoding="utf-8")
    os.utime(script, ns=(1, 1))

    assert registrar.is_hook_due()
    current = registrar.current()
    assert current is not None and current.items["tools"] == [{"name": "b", "path": "b.sh"}]


@pytest.mark.parametrize(("ttl", "age", "is_old"), [(5, 4.9, False), (5, 5, True), (0, 4.9, False), (0, 5, True)])
def test_what_the_hook_said_grows_old(desk: Desk, ttl: float, age: float, is_old: bool) -> None:
    desk.tree.write("server.d/register.sh", "true", mode=0o755)
    registrar = desk.registrar(register_ttl=ttl)
    registrar.current()
    desk.clock.now += age

    assert registrar.is_hook_old() is is_old
    assert not registrar.is_hook_due()


def test_a_completion_that_vanished_is_noticed_after_the_time_to_live(desk: Desk) -> None:
    desk.tree.write("c.sh", "")
    path = desk.write_json({"version": 1, "completions": [{"name": "c", "path": "c.sh"}]})
    os.utime(path, ns=(1, 1))
    registrar = desk.registrar()
    registrar.current()
    (desk.tree.root / "c.sh").unlink()
    desk.clock.now += 5

    with pytest.raises(ProjectError, match="there is no file"):
        registrar.current()


def test_registered_tools_replace_those_on_disk_and_are_described_alike(desk: Desk) -> None:
    desk.tree.tool("found")
    desk.tree.write("tools/plain.sh", "echo", mode=0o644)
    item = {"name": "mine", "path": "plain.sh", "description": "d", "timeoutSecs": 3, "arguments": {"properties": {}}}
    desk.write_json({"version": 1, "tools": [item]})
    (tool,) = desk.catalog().snapshot("tools").items

    assert (tool.name, tool.relative_path, tool.description.timeout_secs) == ("mine", "plain.sh", 3)
    assert tool.command == ["bash", str(desk.tree.root / "tools" / "plain.sh")]
    assert tool.definition == {
        "name": "mine",
        "description": "d",
        "inputSchema": {"type": "object", "properties": {}},
    }


def test_a_bad_file_is_an_error_until_it_is_mended(desk: Desk) -> None:
    desk.tree.tool("found")
    desk.write_json({"version": 1, "tools": []})
    catalog = desk.catalog()
    changes: list[str] = []
    catalog.on_change = lambda kind, total, earlier: changes.append(kind)
    assert names(catalog) == []

    desk.write_json({"version": 9})
    for _ in range(2):
        with pytest.raises(InternalError) as caught:
            catalog.mark_stale()
            names(catalog)
        assert caught.value.message == "Unable to load tool registry"
        assert caught.value.data == "server.d/register.json: version must be 1, found 9"
    assert catalog.status("tools")["status"] == "failed"
    assert changes == []

    (desk.tree.root / "server.d" / "register.json").unlink()
    assert names(catalog) == ["found"]
    assert changes == ["tools"]


def test_where_registrations_lie_is_watched(desk: Desk) -> None:
    desk.catalog().snapshot("tools")

    assert str(desk.tree.root / "server.d") in desk.catalog().watched_directories()


def test_what_is_registered_is_not_kept_for_a_static_catalog(desk: Desk) -> None:
    """It has to be asked for again; what is found beside it is kept."""
    desk.tree.write("server.d/register.json", json.dumps({"version": 1, "tools": []}))
    catalog = desk.catalog()
    for kind in ("tools", "prompts"):
        catalog.snapshot(kind)
    registry = desk.tree.root / ".registry"

    assert "format_version" not in json.loads((registry / "tools.json").read_bytes())
    assert json.loads((registry / "prompts.json").read_bytes())["format_version"] == 1
