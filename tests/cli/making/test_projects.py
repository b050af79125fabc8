"""`new` and `init`, as a person or a script starts them."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.programs import completed
from tests.support.wire import CHECKOUT, clean_environment

PROJECT = {
    ".gitignore",
    "README.md",
    "server.d/schemas/server.schema.json",
    "server.d/server.meta.json",
    "server.d/schemas/test.schema.json",
    "tests/hello.test.yaml",
    "tools/hello.sh",
}


def files_in(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def says_nothing_bad(root: Path) -> bool:
    done = mcpgreen("validate", "--strict", "--json", "--project-root", str(root))
    report = json.loads(done.stdout)
    assert [message for message in report["messages"] if message["level"] in ("warning", "error")] == []
    return done.returncode == 0


def test_a_new_project_is_complete_and_without_a_finding(tmp_path: Path) -> None:
    done = mcpgreen("new", "demo", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Created project demo at {tmp_path}/demo\n")
    root = tmp_path / "demo"
    assert files_in(root) == PROJECT
    assert json.loads((root / "server.d/server.meta.json").read_text(encoding="utf-8")) == {
        "$schema": "schemas/server.schema.json",
        "name": "demo",
        "title": "Demo",
        "version": "0.1.0",
        "description": "Tools for Demo",
    }
    assert (root / ".gitignore").read_text(encoding="utf-8").splitlines() == [
        ".registry/",
        "*.log",
        ".DS_Store",
        "Thumbs.db",
    ]
    assert says_nothing_bad(root)


def test_the_first_tool_runs_and_the_tests_of_the_project_pass(tmp_path: Path) -> None:
    mcpgreen("new", "demo", cwd=tmp_path)
    mcpgreen("scaffold", "test", cwd=tmp_path / "demo")
    launcher = str(CHECKOUT / "scripts" / "mcpgreen")

    done = completed(
        [tmp_path / "demo/test/run.sh"],
        env=clean_environment({"MCPGREEN": launcher, "MCPGREEN_PYTHON": sys.executable}),
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors, 0 warnings\npassed tests/hello.test.yaml: it answers (" in done.stdout
    assert "\n1 passed in " in done.stdout


def test_a_project_can_begin_without_a_tool(tmp_path: Path) -> None:
    done = mcpgreen("new", "demo", "--no-hello", cwd=tmp_path)

    assert done.returncode == 0
    assert files_in(tmp_path / "demo") == {name for name in PROJECT if "hello" not in name and "test" not in name}
    assert "run-tool hello" not in (tmp_path / "demo/README.md").read_text(encoding="utf-8")
    assert (tmp_path / "demo/tools").is_dir()
    assert "  tools/\n" in done.stdout
    assert says_nothing_bad(tmp_path / "demo")


@pytest.mark.parametrize("words", [["../my-server"], ["../my-server/"], ["--project-root", "../my-server"]])
def test_the_place_of_a_new_project_names_it(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "here").mkdir()
    done = mcpgreen("new", *words, cwd=tmp_path / "here")
    assert done.stdout.startswith(f"Created project my-server at {tmp_path}/my-server\n"), done.stderr
    assert "  cd ../my-server\n" in done.stdout
    assert files_in(tmp_path) == {f"my-server/{name}" for name in PROJECT}


def test_a_project_works_where_mcpgreen_is_not_on_the_path(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "MCPGREEN_PYTHON": sys.executable}
    mcpgreen("new", "demo", cwd=tmp_path, env=env)
    page = (tmp_path / "demo/README.md").read_text(encoding="utf-8")
    commands = page.partition("## Try it")[2].partition("##")[0]

    done = completed(["sh", "-e", "-c", commands], cwd=tmp_path / "demo", env=clean_environment(env))
    assert (done.returncode, done.stderr) == (0, "")
    assert "passed tests/hello.test.yaml" in done.stdout
    assert done.stdout.endswith("0 errors, 0 warnings\n")


def test_a_dockerfile_serves_the_project_with_what_its_tool_needs(tmp_path: Path) -> None:
    done = mcpgreen("new", "demo", "--docker", "--lang", "node", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.endswith("docker build -t demo . && docker run --rm -i demo\n")
    text = (tmp_path / "demo/Dockerfile").read_text(encoding="utf-8")
    assert not re.search("@[A-Z]+@", text)
    assert " nodejs " in text
    assert text.endswith('ENTRYPOINT ["/srv/demo/run-server.sh"]\n')
    assert "**/.*\n!.mcpgreen\n" in (tmp_path / "demo/.dockerignore").read_text(encoding="utf-8")


def test_the_image_needs_no_index_that_has_us(tmp_path: Path) -> None:
    """As in the image: a copy of the folder, the Python that the Dockerfile names, and no environment."""
    done = mcpgreen("new", "demo", "--docker", cwd=tmp_path)
    assert "  .mcpgreen/\n" in done.stdout
    assert f"FROM python:{sys.version_info[0]}.{sys.version_info[1]}-slim" in (tmp_path / "demo/Dockerfile").read_text()
    place = shutil.copytree(tmp_path / "demo", tmp_path / "srv")
    env = {"PATH": os.environ["PATH"], "MCPGREEN_PYTHON": sys.executable, "HOME": "/nowhere"}
    ran = completed([place / "run-server.sh", "run-tool", "hello", "--plain"], env=env, encoding=None)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"Hello, World!\n", b"")


def test_nothing_of_it_is_writable_by_others_whatever_the_umask(tmp_path: Path) -> None:
    """With a umask of 002 the server refused each new tool."""
    completed(
        ["sh", "-c", 'umask 000; exec "$0" -m mcpgreen new demo', sys.executable],
        cwd=tmp_path,
        env=clean_environment(None),
        check=True,
    )

    paths = [tmp_path / "demo", *(tmp_path / "demo").rglob("*")]
    assert [path for path in paths if path.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("name", ["my tools", "a/b c", "x" * 65, "naïve"])
def test_a_name_that_cannot_be_used_is_refused(tmp_path: Path, name: str) -> None:
    done = mcpgreen("new", name, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "A-Z a-z 0-9 _ -" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()

    done = mcpgreen("new", "demo", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "it already exists; choose another name, or run mcpgreen init in it" in done.stderr
    assert list((tmp_path / "demo").iterdir()) == []


def at_a_terminal(*arguments: str, typed: bytes, cwd: Path) -> tuple[int, str]:
    """What a person sees who types this. Ends with the status of the command."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgreen", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=cwd,
        env=clean_environment(None),
        start_new_session=True,
        preexec_fn=lambda: os.login_tty(0) if hasattr(os, "login_tty") else None,
    )
    os.close(terminal)
    os.write(main, typed)
    seen = b""
    while True:
        try:
            piece = os.read(main, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    return process.wait(timeout=120), seen.decode("utf-8")


def test_at_a_terminal_it_asks_for_title_description_and_language(tmp_path: Path) -> None:
    typed = b'My \xc3\xa4pps\nDo "things"\ncobol\npython\n'

    status, seen = at_a_terminal("new", "demo", typed=typed, cwd=tmp_path)

    assert status == 0, seen
    assert "Title [Demo]: " in seen
    assert "Description [Tools for Demo]: " in seen
    assert "Please choose one of bash, sh, python" in seen
    meta = json.loads((tmp_path / "demo/server.d/server.meta.json").read_text(encoding="utf-8"))
    assert (meta["title"], meta["description"]) == ("My äpps", 'Do "things"')
    assert (tmp_path / "demo/tools/hello.py").exists()


def test_an_empty_folder_becomes_a_project(tmp_path: Path) -> None:
    root = tmp_path / "my tools"
    root.mkdir()

    done = mcpgreen("init", cwd=root)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"Initialized project at {root}\n")
    assert files_in(root) == PROJECT
    assert json.loads((root / "server.d/server.meta.json").read_text(encoding="utf-8"))["name"] == "my-tools"
    assert says_nothing_bad(root)


def test_init_leaves_everything_that_exists(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n", encoding="utf-8")
    (tmp_path / "tools/hello").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\nsecret", encoding="utf-8")

    done = mcpgreen("init", "--name", "mine", cwd=tmp_path)

    assert done.returncode == 0
    assert "Skipped existing README.md\nSkipped existing tools/hello\n" in done.stdout
    assert "Added to .gitignore: .registry/ .DS_Store Thumbs.db\n" in done.stdout
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert list((tmp_path / "tools/hello").iterdir()) == []
    ignored = (tmp_path / ".gitignore").read_text(encoding="utf-8")
    assert ignored == "*.log\nsecret\n.registry/\n.DS_Store\nThumbs.db\n"
