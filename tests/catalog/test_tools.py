from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.tools import Tool, discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from tests.catalog.trees import TreeBuilder

INLINE = '# mcp: {"description": "described"}\n'


def discovered(tree: TreeBuilder, only_below: str | None = None) -> Discovery:
    return found_in(tree.project, only_below)


def found_in(project: Project, only_below: str | None = None) -> Discovery:
    return discover_tools(project, survey(project, [project.tools_dir], only_below=only_below))


def fingerprint(project: Project) -> tuple[Any, ...]:
    return survey(project, [project.tools_dir]).fingerprint


def names(tree: TreeBuilder, only_below: str | None = None) -> list[str]:
    return [tool.name for tool in discovered(tree, only_below).items]


def only_tool(tree: TreeBuilder) -> Tool:
    (tool,) = discovered(tree).items
    return tool


# Files, executable unless they are descriptions, and the names of their tools.
NAMED: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "any depth": (
        dict.fromkeys(("direct.sh", "one/one.py", "a/b/c/d/deep", "x/helper.sh"), "#!/bin/sh\n"),
        ["deep", "direct", "helper", "one"],
    ),
    "sorted": (
        {
            f"{number}.sh": f'#!/bin/sh\n# mcp: {{"name": "{name}"}}\n'
            for number, name in enumerate(("zebra", "Ant", "ant"))
        },
        ["Ant", "ant", "zebra"],
    ),
    "unusual names": ({"\u00fcber\u00a0space/gr\u00fc\u00df dich.sh": "#!/bin/sh\n"}, ["gr---dich"]),
    "fields of the author": ({"a.sh": "", "a.meta.json": '{"owner": "me", "colour": "green"}'}, ["a"]),
    "text with a comment": ({"a": INLINE}, ["a"]),
    "text with a description": ({"a": "text\n", "a.meta.json": "{}"}, ["a"]),
    "script": ({"a.py": "#!/usr/bin/env python3\n"}, ["a"]),
    "shell script": ({"a.sh": "echo hello\n"}, ["a"]),
    "empty shell script": ({"a.bash": b""}, ["a"]),
    "ELF": ({"a": b"\x7fELF\2\1\1"}, ["a"]),
    "Mach-O 64": ({"a": b"\xcf\xfa\xed\xfe\7"}, ["a"]),
    "Mach-O 32": ({"a": b"\xfe\xed\xfa\xce"}, ["a"]),
    "Mach-O of two": ({"a": b"\xca\xfe\xba\xbe"}, ["a"]),
    "Windows": ({"a.exe": b"MZ\x90\0"}, ["a"]),
}


@pytest.mark.parametrize(("files", "expected"), NAMED.values(), ids=NAMED)
def test_executable_files_are_tools(tree: TreeBuilder, files: dict[str, str | bytes], expected: list[str]) -> None:
    for path, content in files.items():
        tree.write(f"tools/{path}", content, mode=0o644 if ".meta." in path else 0o755)
    assert names(tree) == expected
    assert discovered(tree).warnings == []


@pytest.mark.parametrize(
    ("path", "meta", "name"),
    [
        ("weather/tool.sh", None, "weather"),
        ("weather/tool", None, "weather"),
        ("weather/tool.sh", {"description": "d"}, "weather"),
        ("a/b.c/tool.py", {}, "b.c"),
        ("odd folder/tool.sh", {}, "odd-folder"),
        ("weather/tool.sh", {"name": "forecast"}, "forecast"),
        ("weather/tools.sh", None, "tools"),
        ("tool.sh", None, "tool"),
    ],
)
def test_a_file_called_tool_is_named_after_its_folder(
    tree: TreeBuilder, path: str, meta: dict[str, Any] | None, name: str
) -> None:
    """All but one of the tools of a project were lost: each was called tool."""
    tree.write(f"tools/{path}", "#!/bin/sh\n", mode=0o755)
    if meta is not None:
        tree.write(f"tools/{path}.meta.json", json.dumps(meta))
    assert only_tool(tree).name == name


def test_a_tool_knows_its_paths_and_how_it_is_started(tree: TreeBuilder) -> None:
    tree.tool("greet", name="say.hello")
    tool = only_tool(tree)
    assert tool.name == "say.hello"
    assert tool.relative_path == "greet/greet.sh"
    assert tool.path == str(tree.root / "tools/greet/greet.sh")
    assert tool.command == [tool.path]


@pytest.mark.parametrize(
    ("file_name", "text", "interpreter"),
    [
        ("lib.sh", INLINE, ["bash"]),
        ("lib.bash", "#!/bin/sh\n" + INLINE, ["bash"]),
        ("lib", "#!/bin/sh\n" + INLINE, ["/bin/sh"]),
        ("lib.py", "#!/usr/bin/env -S python3 -u\r\n" + INLINE, ["/usr/bin/env", "-S python3 -u"]),
    ],
)
def test_a_script_without_the_bit_is_a_tool_if_it_is_described(
    tree: TreeBuilder, file_name: str, text: str, interpreter: list[str]
) -> None:
    tree.write(f"tools/x/{file_name}", text)
    tool = only_tool(tree)
    assert tool.command == [*interpreter, tool.path]
    assert tool.definition["description"] == "described"

    tree.write(f"tools/x/{file_name}", "#!/bin/sh\n")
    tree.write("tools/x/lib.meta.yaml", "name: from-yaml\n")
    assert names(tree) == ["from-yaml"]


def test_helpers_data_and_hidden_files_are_no_tools(tree: TreeBuilder) -> None:
    tree.write("tools/x/helper.sh", "#!/bin/sh\necho\n")
    tree.write("tools/x/library.py", "#!/usr/bin/env python3\n")
    tree.write("tools/x/data.txt", INLINE)
    tree.write("tools/x/data.meta.json", "{}")
    tree.write("tools/x/smoke.sh", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/x/y.meta.json", "{}", mode=0o755)
    tree.write("tools/x/.hidden.sh", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/.git/hooks/pre-push", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/x/ui/index.html", "<html>")
    tree.write("tools/x/ui/ui.meta.json", "{}")

    discovery = discovered(tree)
    assert discovery.items == []
    assert sorted(discovery.warnings) == [
        "tools/x/data.txt: has a description, but is neither executable nor a script (chmod +x)",
        "tools/x/y.meta.json: there is no script with the same name next to it",
    ]


@pytest.mark.parametrize("content", [b"", b"text\n", b"<html>", b"#", b"\xef\xbb\xbf#!/bin/sh\n", b"\x89PNG"], ids=str)
def test_the_bit_alone_makes_no_tool(tree: TreeBuilder, content: bytes) -> None:
    """On some file systems every file has it, and after `chmod -R 755`."""
    for name in ("LICENSE", "README.md", "index.html"):
        tree.write(f"tools/x/{name}", content, mode=0o755)
    discovery = discovered(tree)
    assert (discovery.items, discovery.warnings) == ([], [])
    reason = "not a tool: it is neither a script (#!) nor a program, and has no description"
    assert sorted(discovery.hints) == [f"tools/x/{name}: {reason}" for name in ("LICENSE", "README.md", "index.html")]


def test_nothing_below_a_folder_ui_is_a_tool(tree: TreeBuilder) -> None:
    tree.tool("good")
    for place in ("tools/good/ui", "tools/good/ui/lib", "tools/ui"):
        tree.write(f"{place}/build.sh", "#!/bin/sh\n", mode=0o755)
        tree.write(f"{place}/described.py", "#!/usr/bin/env python3\n", mode=0o755)
        tree.write(f"{place}/described.meta.json", "{}")
    discovery = discovered(tree)
    assert [tool.name for tool in discovery.items] == ["good"]
    assert discovery.hints == ["tools/ui: neither a tool nor a folder of tools: the files below ui/ belong to an app"]


def test_the_registry_entry_holds_everything_that_is_known(tree: TreeBuilder) -> None:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}}
    tree.tool("greet", title="Greet", arguments=schema, timeoutSecs=5, needs=["roots"], path="/etc/passwd")

    tool = only_tool(tree)

    assert tool.registry_entry == {
        "name": "greet",
        "description": "",
        "path": "greet/greet.sh",
        "title": "Greet",
        "inputSchema": schema,
        "timeoutSecs": 5,
        "needs": ["roots"],
    }
    assert tool.definition == {"name": "greet", "title": "Greet", "inputSchema": schema}
    assert tool.description.timeout_secs == 5


def test_a_bad_description_costs_one_tool_and_a_warning(tree: TreeBuilder) -> None:
    tree.tool("good")
    tree.tool("bad", inputSchema=[])
    tree.write("tools/worse.sh", "#!/bin/sh\n# mcp: {\n", mode=0o755)

    discovery = discovered(tree)

    assert [tool.name for tool in discovery.items] == ["good"]
    assert sorted(discovery.warnings)[0] == (
        "tools/bad/bad.meta.json: inputSchema must be an object, found an array; the tool is left out"
    )
    assert sorted(discovery.warnings)[1].startswith("tools/worse.sh: not valid JSON")


def test_a_dropped_annotation_is_a_warning_about_the_file_that_has_it(tree: TreeBuilder) -> None:
    tree.tool("greet", annotations={"readOnlyHint": "yes"})
    assert only_tool(tree).definition["annotations"] == {}
    assert discovered(tree).warnings[0].startswith("tools/greet/greet.meta.json: annotations.readOnlyHint")


def test_of_two_tools_with_one_name_the_first_path_stays(tree: TreeBuilder) -> None:
    tree.tool("b", name="same")
    tree.tool("a", name="same")

    discovery = discovered(tree)

    assert [tool.relative_path for tool in discovery.items] == ["a/a.sh"]
    assert discovery.warnings == ["tools/b/b.sh: skipped because tools/a/a.sh already provides the tool same"]


def test_a_link_to_a_file_below_tools_is_a_tool(tree: TreeBuilder) -> None:
    target = tree.write("tools/x/shared.data", "#!/bin/sh\n", mode=0o755)
    (tree.root / "tools" / "alias").symlink_to(target)
    assert names(tree) == ["alias", "shared"]


@pytest.mark.parametrize("name", ["run.sh", "run", "other.meta.json"])
def test_a_link_out_of_tools_is_skipped_with_a_warning(tree: TreeBuilder, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("{}", encoding="utf-8")
    outside.chmod(0o755)
    (tree.root / "tools" / name).symlink_to(outside)

    discovery = discovered(tree)

    assert discovery.items == []
    assert discovery.warnings == [f"tools/{name}: skipped because it is a symbolic link to a file outside tools/"]


def test_linked_data_needs_no_warning(tree: TreeBuilder, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1,2", encoding="utf-8")
    (tree.root / "tools" / "data.csv").symlink_to(tmp_path / "data.csv")
    (tree.root / "tools" / "broken").symlink_to(tmp_path / "nothing")
    (tree.root / "tools" / "self").symlink_to("self")
    assert discovered(tree)[:2] == ([], [])


def test_linked_directories_are_not_followed(tree: TreeBuilder) -> None:
    tree.tool("greet")
    (tree.root / "tools" / "loop").symlink_to(tree.root / "tools")
    discovery = discovered(tree)
    assert len(discovery.items) == 1
    assert discovery.warnings == ["tools/loop: a symbolic link to a directory is not followed"]


@pytest.mark.parametrize("name", [b"two\nlines.sh", b"return\r.sh", b"latin-\xff.sh"])
def test_names_that_are_no_line_of_text_are_skipped_with_a_warning(tree: TreeBuilder, name: bytes) -> None:
    tree.tool("good")
    path = os.fsencode(tree.root / "tools") + b"/" + name
    with open(path, "wb") as file:
        file.write(b"#!/bin/sh\n")
    os.chmod(path, 0o755)

    discovery = discovered(tree)

    assert [tool.name for tool in discovery.items] == ["good"]
    (warning,) = discovery.warnings
    assert warning.isascii()
    assert warning.isprintable()


def test_a_directory_name_with_a_line_break_hides_what_is_in_it(tree: TreeBuilder) -> None:
    tree.write("tools/a\nb/tool.sh", "#!/bin/sh\n", mode=0o755)
    discovery = discovered(tree)
    assert discovery.items == []
    assert len(discovery.warnings) == 1


def test_a_pipe_among_the_tools_does_not_stop_the_scan(tree: TreeBuilder) -> None:
    os.mkfifo(tree.root / "tools" / "pipe.sh", 0o755)
    os.mkfifo(tree.root / "tools" / "greet.meta.json")
    tree.write("tools/greet.sh", "#!/bin/sh\n", mode=0o755)
    tree.write("tools/other.sh", "#!/bin/sh\n", mode=0o755)
    assert names(tree) == ["other"]


@pytest.mark.parametrize(
    ("mode", "names", "warnings", "hints"),
    [
        (0o644, [], [], ["tools/x.py: not a tool: it is not executable (chmod +x) and has no description"]),
        (0o755, ["x"], [], []),
    ],
)
def test_a_mode_that_keeps_a_script_from_being_called_is_named(
    tree: TreeBuilder, mode: int, names: list[str], warnings: list[str], hints: list[str]
) -> None:
    tree.write("tools/x.py", "#!/usr/bin/env python3\n", mode=mode)
    discovery = discovered(tree)
    assert ([tool.name for tool in discovery.items], discovery.warnings, discovery.hints) == (names, warnings, hints)


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"inputSchemas": {}}, "inputSchemas is unknown; did you mean inputSchema?"),
        ({"timeoutSec": 5}, "timeoutSec is unknown; did you mean timeoutSecs?"),
        ({"annotations": {"readonlyHint": True}}, "annotations.readonlyHint is unknown; did you mean readOnlyHint?"),
    ],
)
def test_a_field_that_looks_like_a_typo_is_named(tree: TreeBuilder, fields: dict[str, object], warning: str) -> None:
    tree.tool("greet", **fields)
    assert discovered(tree).warnings == [f"tools/greet/greet.meta.json: {warning}"]


@contextmanager
def unprivileged(directory: Path) -> Iterator[None]:
    """Root may read everything, so be somebody else for a moment; the way to the directory is opened for that."""
    if os.geteuid() != 0:
        yield
        return
    closed = {place: place.stat().st_mode for place in (directory, *directory.parents)}
    for place, mode in closed.items():
        if not mode & 0o001:
            place.chmod(mode | 0o055)  # our group stays root
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        for place, mode in closed.items():
            if not mode & 0o001:
                place.chmod(mode)


def test_what_may_not_be_read_costs_a_warning_only(tree: TreeBuilder) -> None:
    tree.tool("good")
    tree.tool("bad", name="bad")
    (tree.root / "tools/bad/bad.meta.json").chmod(0)
    (tree.root / "tools" / "closed").mkdir(mode=0)
    tree.write("tools/program", b"\x7fELF", mode=0o111)
    with unprivileged(tree.root):
        discovery = discovered(tree)
    assert [tool.name for tool in discovery.items] == ["good", "program"]
    assert len(discovery.warnings) == 2


def test_a_scan_can_be_narrowed_to_a_subdirectory(tree: TreeBuilder) -> None:
    tree.tool("a")
    tree.tool("b")
    assert names(tree, "a") == ["a"]
    assert names(tree, str(tree.root / "tools" / "b")) == ["b"]
    assert names(tree, ".") == ["a", "b"]


@pytest.mark.parametrize("only_below", ["..", "/", "../tools-two", "missing"])
def test_a_scan_cannot_be_narrowed_to_something_outside(tree: TreeBuilder, only_below: str) -> None:
    (tree.root / "tools-two").mkdir()
    with pytest.raises(ProjectError, match="not a directory below tools/"):
        discovered(tree, only_below)


def test_every_kind_of_change_changes_the_fingerprint(tree: TreeBuilder) -> None:
    script = tree.tool("greet", description="x")
    meta = script.with_name("greet.meta.json")
    changes: list[Callable[[], object]] = [
        lambda: meta.write_text('{"description": "longer"}', encoding="utf-8"),
        lambda: os.utime(meta, ns=(1, 1)),
        lambda: script.chmod(0o644),
        lambda: script.rename(script.with_name("other.sh")),
        lambda: (tree.root / "tools" / "new").mkdir(),
        lambda: meta.unlink(),
    ]
    seen = [fingerprint(tree.project)]
    for change in changes:
        change()
        seen.append(fingerprint(tree.project))
    assert len(set(seen)) == len(seen)


def test_hidden_files_do_not_change_the_fingerprint(tree: TreeBuilder) -> None:
    tree.tool("greet")
    before = fingerprint(tree.project)
    tree.write("tools/greet/.greet.sh.swp", "x")
    tree.write("tools/.cache/x", "x")
    assert fingerprint(tree.project) == before


def test_what_lies_too_deep_is_left_out_and_said(tree: TreeBuilder) -> None:
    """A script that made three thousand folders inside each other held the server for seconds, again and again."""
    tree.write("tools/near.sh", "#!/bin/sh\n", mode=0o755)
    deep = tree.root / "tools"
    for _ in range(40):
        deep = deep / "d"
        deep.mkdir()
    found = discovered(tree)

    assert [tool.name for tool in found.items] == ["near"]
    assert found.warnings == ["tools: it has more than 32 levels or 5000 folders; the others are left out"]
