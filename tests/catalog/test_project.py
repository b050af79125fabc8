from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgreen.errors import ProjectError
from mcpgreen.project import unmarked
from mcpgreen.project.project import Project, bundled_project_root, find_project, open_project
from tests.catalog.trees import TreeBuilder
from tests.support.prerequisites import NOBODY


@pytest.fixture
def tree(tmp_path: Path) -> TreeBuilder:
    return TreeBuilder(tmp_path / "my-cool_server")


def server_meta(tree: TreeBuilder, text: str) -> None:
    tree.write("server.d/server.meta.json", text)


def found(explicit: str | None, cwd: Path, directories: dict[str, str] | None = None) -> Project | None:
    return find_project(explicit, cwd=str(cwd), directories=directories or {})


def test_an_explicit_root_wins_over_the_project_around_the_working_directory(tree: TreeBuilder, tmp_path: Path) -> None:
    server_meta(tree, "{}")
    (tmp_path / "other").mkdir()

    project = found("../other", tree.root)

    assert project is not None
    assert project.root == str(tmp_path / "other")


def test_an_explicit_root_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="nowhere: the project root does not exist"):
        found(str(tmp_path / "nowhere"), tmp_path)


def test_an_explicit_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ProjectError, match="not a directory"):
        found("file", tmp_path)


def test_the_project_is_found_from_a_directory_deep_inside_it(tree: TreeBuilder) -> None:
    server_meta(tree, "{}")
    deep = tree.root / "tools" / "a" / "b"
    deep.mkdir(parents=True)

    project = found(None, deep)

    assert project is not None
    assert project.root == str(tree.root)


def test_a_folder_with_nothing_of_ours_is_no_project(tmp_path: Path) -> None:
    for name in ("tools", "resources", "prompts"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "notes.txt").write_text("", encoding="utf-8")
        (tmp_path / name / ".hidden").write_text("", encoding="utf-8")
        (tmp_path / name / ".hidden").chmod(0o755)
    assert found(None, tmp_path) is None


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("server.d/anything", 0o644),
        ("tools/hello", 0o755),
        ("tools/group/hello/hello.sh", 0o755),
        ("tools/hello.meta.json", 0o644),
        ("resources/about.meta.yaml", 0o644),
        ("prompts/explain/explain.meta.yml", 0o644),
    ],
)
def test_a_folder_with_something_of_ours_is_a_project(tree: TreeBuilder, path: str, mode: int) -> None:
    tree.write(path, "", mode=mode)
    deep = tree.root / "docs" / "more"
    deep.mkdir(parents=True)

    project = found(None, deep)

    assert project is not None
    assert project.root == str(tree.root)


def test_a_python_function_that_is_a_tool_makes_a_project_without_the_bit(tree: TreeBuilder) -> None:
    tree.write("tools/plain.py", "print('no tool')\n", mode=0o644)
    assert found(None, tree.root) is None
    tree.write("tools/area.py", "import mcp_tool\n\n@mcp_tool.tool\ndef area() -> int: ...\n", mode=0o644)
    project = found(None, tree.root)

    assert project is not None
    assert project.root == str(tree.root)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("server.d/server.meta.json", "server.d/env"), ("server.d/env", "tools/hello.meta.json")],
)
def test_a_folder_that_says_more_wins_over_a_nearer_one(tree: TreeBuilder, outer: str, inner: str) -> None:
    tree.write(outer, "{}")
    tree.write(f"inner/{inner}", "{}")

    project = found(None, tree.root / "inner")

    assert project is not None
    assert project.root == str(tree.root)


def test_of_folders_that_say_the_same_the_nearest_wins(tree: TreeBuilder) -> None:
    tree.tool("outer")
    tree.write("inner/prompts/explain.meta.json", "{}")

    project = found(None, tree.root / "inner")

    assert project is not None
    assert project.root == str(tree.root / "inner")


def test_a_look_for_something_of_ours_has_a_bound(tree: TreeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(unmarked.MAX_BELOW // 10):
        for name in range(20):
            tree.write(f"tools/{number}/{name}", "")
    looks = []
    monkeypatch.setattr(unmarked, "_is_ours", lambda entry: looks.append(entry.path))

    assert found(None, tree.root) is None

    assert unmarked.MAX_BELOW // 2 < len(looks) <= unmarked.MAX_BELOW


def test_a_large_folder_does_not_hide_what_lies_beside_it(tree: TreeBuilder) -> None:
    for number in range(unmarked.MAX_OF_ONE + 100):
        tree.write(f"tools/a/{number}", "")
        tree.write(f"tools/z/{number}", "")
    tree.tool("m")

    assert found(None, tree.root) is not None


@pytest.mark.parametrize("path", ["server.d/env", "tools/hello"])
def test_what_belongs_to_another_user_is_no_project_unless_it_is_named(tree: TreeBuilder, path: str) -> None:
    """Who can write to /tmp could have decided what is served to whoever starts a server below it."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(tree.write(path, "", mode=0o755).parent, NOBODY, -1)

    assert found(None, tree.root) is None
    assert found(str(tree.root), tree.root) is not None


def test_a_home_that_is_taken_for_a_project_is_worth_a_word(
    tree: TreeBuilder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tree.tool("stray")
    found(None, tree.root)
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("HOME", str(tree.root))

    assert found(None, tree.root) is not None

    assert f"the project is {tree.root}, because of {tree.root}/tools/stray/stray.sh" in capfd.readouterr().err


def test_paths_are_physical(tree: TreeBuilder, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tree.root)

    project = found(f"{link}/", tmp_path)

    assert project is not None
    assert project.root == str(tree.root)
    assert project.tools_dir == str(tree.root / "tools")
    assert project.registry_dir == str(tree.root / ".registry")


def test_directories_can_be_moved_relative_to_the_root_or_anywhere(tree: TreeBuilder, tmp_path: Path) -> None:
    project = Project(str(tree.root), {"tools_dir": "scripts", "prompts_dir": str(tmp_path / "prompts"), "ui_dir": ""})

    assert project.tools_dir == str(tree.root / "scripts")
    assert project.prompts_dir == str(tmp_path / "prompts")
    assert project.ui_dir == str(tree.root / "ui")


def test_directories_can_be_moved_by_the_variables_of_the_project(tree: TreeBuilder, tmp_path: Path) -> None:
    """They were listed as settings in force, and had no effect: a folder of documents elsewhere was not served."""
    lines = f"MCPGREEN_RESOURCES_DIR={tmp_path / 'documents'}\nMCPGREEN_SERVER_DIR=elsewhere\n"
    tree.write("server.d/env", lines).chmod(0o644)
    (tree.root / "server.d").chmod(0o755)
    tree.root.chmod(0o755)

    project, _, _ = open_project({"project_root": str(tree.root)}, {"MCPGREEN_TOOLS_DIR": "scripts"})

    assert project.resources_dir == str(tmp_path / "documents")
    assert project.tools_dir == str(tree.root / "scripts")
    assert project.server_dir == str(tree.root / "server.d")  # where the variables were found


def test_finding_a_project_creates_nothing(tree: TreeBuilder) -> None:
    server_meta(tree, "{}")
    found(None, tree.root)
    assert sorted(os.listdir(tree.root)) == ["server.d", "tools"]


def test_paths_below_the_root_are_shown_relative_to_it(tree: TreeBuilder) -> None:
    assert tree.project.shown(str(tree.root / "tools" / "x.sh")) == "tools/x.sh"
    assert tree.project.shown("/etc/passwd") == "/etc/passwd"


def test_a_server_without_description_is_named_after_its_directory(tree: TreeBuilder) -> None:
    assert tree.project.server_info() == {"name": "my-cool_server", "title": "My Cool Server", "version": "0.0.0"}


@pytest.mark.parametrize(
    ("description", "name"),
    [(None, "my-team"), ("{}", "my-team"), ('{"title": "T"}', "my-team"), ('{"name": "n"}', "n")],
)
def test_who_starts_the_server_names_it_unless_its_description_does(
    tree: TreeBuilder, description: str | None, name: str
) -> None:
    if description is not None:
        server_meta(tree, description)
    variables = {"MCPBASH_PROJECT_ROOT": str(tree.root), "MCPBASH_SERVER_NAME": "my-team"}
    project, _, _ = open_project({}, variables)

    assert (project.server_name(), project.server_info()["name"]) == (name, name)
    assert project.default_info()["title"] == "My Team"


def test_the_server_introduces_itself_as_its_description_says(tree: TreeBuilder) -> None:
    server_meta(
        tree,
        '{"name": "notes", "title": "Notes!", "version": "2.1", "description": "All notes",'
        ' "websiteUrl": "https://notes.example", "author": {"name": "x"}}',
    )
    assert tree.project.server_info() == {
        "name": "notes",
        "title": "Notes!",
        "version": "2.1",
        "description": "All notes",
        "websiteUrl": "https://notes.example",
    }


def test_the_title_is_made_from_the_given_name(tree: TreeBuilder) -> None:
    server_meta(tree, '{"name": "big-data_server"}')
    assert tree.project.server_info()["title"] == "Big Data Server"


def test_the_version_comes_from_the_version_file_before_package_json(tree: TreeBuilder) -> None:
    tree.write("package.json", '{"version": "3.0.0"}')
    assert tree.project.server_info()["version"] == "3.0.0"
    tree.write("VERSION", " 4.0.0 \n")
    assert tree.project.server_info()["version"] == "4.0.0"


@pytest.mark.parametrize("text", ["{", "[]", "null", "\xff", '{"name": NaN}'])
def test_a_broken_description_costs_a_warning_and_nothing_else(
    tree: TreeBuilder, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server_meta(tree, text)
    assert tree.project.server_info()["name"] == "my-cool_server"
    assert "server.meta.json" in capfd.readouterr().err


def test_fields_of_the_wrong_type_are_dropped_with_a_warning(
    tree: TreeBuilder, capfd: pytest.CaptureFixture[str]
) -> None:
    server_meta(tree, '{"name": 7, "title": null, "version": 1.5, "description": ["x"], "icons": "icon.png"}')

    assert tree.project.server_info() == {"name": "my-cool_server", "title": "My Cool Server", "version": "0.0.0"}
    complaints = capfd.readouterr().err
    assert all(key in complaints for key in ("name", "version", "description", "icons"))
    assert "title" not in complaints


def test_local_icons_are_sent_as_data(tree: TreeBuilder) -> None:
    tree.write("icon.png", b"PNG")
    tree.write("server.d/dark.svg", "<svg/>")
    server_meta(tree, '{"icons": [{"src": "icon.png"}, {"src": "dark.svg", "theme": "dark"}, {"src": "gone.png"}]}')

    assert tree.project.server_info()["icons"] == [
        {"src": "data:image/png;base64,UE5H", "mimeType": "image/png"},
        {"src": "data:image/svg+xml;base64,PHN2Zy8+", "mimeType": "image/svg+xml", "theme": "dark"},
    ]


def test_instructions_lose_their_trailing_newlines_only(tree: TreeBuilder) -> None:
    tree.write("server.d/server.instructions.md", "Use\\n \u00e9 it\n\nwell.\n\n")
    assert tree.project.instructions() == "Use\\n \u00e9 it\n\nwell."


@pytest.mark.parametrize("text", [None, "", "\n\n"])
def test_without_text_there_are_no_instructions(tree: TreeBuilder, text: str | None) -> None:
    if text is not None:
        tree.write("server.d/server.instructions.md", text)
    assert tree.project.instructions() is None


def test_the_bundled_project_is_inside_the_package_or_beside_it() -> None:
    assert os.path.basename(bundled_project_root()) in ("default_project", "project")
    assert os.path.isabs(bundled_project_root())


def test_introducing_the_server_imports_nothing_slow(tree: TreeBuilder) -> None:
    tree.write("icon.png", b"PNG")
    server_meta(tree, '{"icons": [{"src": "icon.png"}]}')
    program = (
        "import sys; from mcpgreen.project.project import Project, find_project;"
        "Project(sys.argv[1], {}).server_info();"
        "find_project(None, cwd='/', directories={});"
        "print(sorted({'yaml', 'gevent'} & set(sys.modules)))"
    )
    # -S: what the site-packages of a test environment import at start is none of our doing; ujson is found by path.
    paths = [path for path in sys.path if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-S", "-c", program, str(tree.root)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(("environ", "expected"), [({}, "debug"), ({"MCPBASH_LOG_LEVEL": "error"}, "error")])
def test_a_debug_marker_lowers_a_log_level_that_is_not_set(
    tree: TreeBuilder, environ: dict[str, str], expected: str
) -> None:
    server_meta(tree, "{}")
    flags = {"project_root": str(tree.root)}
    assert open_project(flags, {})[1].log_level == "info"
    tree.write("server.d/.debug", "")

    assert open_project(flags, environ)[1].log_level == expected
