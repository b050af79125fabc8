"""Packages of Python tools: where they are named, `mcpgreen deps install`, and the Python that tools then run with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mcpgreen.cli.deps import FITS
from mcpgreen.running.scripts.packages import PLACE, READY, Packages, packages_of
from tests.cli.test_commands import mcpgreen
from tests.support.client import Speak
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import text_of

HEADER = "#!/usr/bin/env python3\n# /// script\n# requires-python = '>=3.8'\n# dependencies = [\n#   {}\n# ]\n# ///\n"
USE = "import greeting_of_tests\nprint(greeting_of_tests.WORDS, end='')\n"
PLAIN = "#!/usr/bin/env python3\n" + USE
REMEDY = "run `mcpgreen deps install` in the project"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one wheel, in which pip and uv can find it without a network."""
    directory = tmp_path_factory.mktemp("wheels")
    about = "greeting_of_tests-1.0.dist-info"
    with zipfile.ZipFile(directory / "greeting_of_tests-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("greeting_of_tests.py", "WORDS = 'hello'\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: greeting-of-tests\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return directory


def deps(
    project: ProjectBuilder, *words: str, wheels: Path, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "UV_OFFLINE": "1", "UV_FIND_LINKS": str(wheels)}
    others = {"HOME": str(project.root), "PATH": path or os.environ["PATH"]}
    return mcpgreen("deps", *words, "--project-root", str(project.root), env={**index, **others})


def installed(project: ProjectBuilder, tool: Path, *, module: str = "", text: str = "WORDS = 'hello'") -> Packages:
    """The environment of a tool with one module, made by hand: `deps install` takes seconds."""
    packages = packages_of(str(project.root), str(tool))
    assert packages is not None
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", packages.place], check=True, timeout=60)
    [library] = Path(packages.place).glob("lib/python*/site-packages")
    (library / f"{module or 'greeting_of_tests'}.py").write_text(text)
    Path(packages.place, READY).touch()
    return packages


def path_with(directory: Path, python: str = 'exec /usr/bin/python3 "$@"') -> str:
    """A PATH without uv."""
    (directory / "bin").mkdir()
    (directory / "bin/python3").write_text(f"#!/bin/sh\n{python}\n")
    (directory / "bin/python3").chmod(0o755)
    return f"{directory}/bin:/bin"


def path_with_uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = beside if beside.exists() else Path(require_program("uv"))
    return f"{found.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_tool_runs_with_the_packages_that_it_names(
    project: ProjectBuilder, speak: Speak, wheels: Path, tmp_path: Path, installer: str
) -> None:
    path = path_with_uv() if installer == "uv" else path_with(tmp_path)
    project.tool("greet", HEADER.format('"greeting-of-tests>=1",  # a comment with a "word"') + USE)
    client = speak()

    result = client.call_tool("greet")
    assert result["isError"]
    assert "packages that are not installed yet: greeting-of-tests>=1. Ask the person" in text_of(result)
    assert REMEDY in text_of(result)

    done = deps(project, "install", wheels=wheels, path=path)
    said = r"tools/greet: greeting-of-tests>=1: installed for (\.environments/\w+/bin/python)\n"
    assert (match := re.fullmatch(said, done.stdout)), done.stderr
    assert os.access(project.root / match[1], os.X_OK)
    assert "Installing packages for tools/greet ..." in done.stderr
    assert text_of(client.call_tool("greet")) == "hello"
    assert (project.root / PLACE / ".gitignore").read_text() == "*\n"

    project.tool("greet", HEADER.format('"greeting-of-tests==1.0"') + USE)
    assert REMEDY in text_of(speak().call_tool("greet"))  # another set of packages


def test_what_cannot_be_installed_is_said_and_leaves_nothing(
    project: ProjectBuilder, wheels: Path, tmp_path: Path
) -> None:
    project.tool("greet", HEADER.format("'greeting-of-tests'") + USE)
    python = 'mkdir -p "$3/bin"; printf "#!/bin/sh\\nexit 1" > "$3/bin/python"; chmod +x "$3/bin/python"'
    done = deps(project, "install", wheels=wheels, path=path_with(tmp_path, python))

    assert done.returncode == 1
    assert "tools/greet: there is no Python >=3.8 here; install one, or install uv" in done.stderr
    assert os.listdir(project.root / PLACE) == [".gitignore"]
    assert deps(project, wheels=wheels).stdout == "tools/greet: greeting-of-tests: not installed\n"


def test_the_python_of_an_environment_has_to_fit() -> None:
    versions = ("", ">=3.10,<4", ">=4")
    assert [subprocess.call([sys.executable, "-c", FITS, each], timeout=60) for each in versions] == [0, 0, 1]


def test_requirements_of_the_project_are_for_all_other_tools(project: ProjectBuilder, speak: Speak) -> None:
    project.write("requirements.txt", "# none yet\n")
    tool = project.tool("greet", PLAIN)
    client = speak()
    assert REMEDY not in text_of(client.call_tool("greet"))

    project.write("requirements.txt", "greeting-of-tests\n")
    result = text_of(client.call_tool("greet"))
    assert "No module named 'greeting_of_tests'" in result
    assert result.endswith(f"requirements.txt is not installed: {REMEDY}.")

    packages = installed(project, tool)
    assert text_of(client.call_tool("greet")) == "hello"
    Path(packages.place, "bin").chmod(0o777)
    assert "can be written to by others" in client.error("tools/call", {"name": "greet"})["message"]


def test_a_tool_with_packages_is_forked_from_their_python(project: ProjectBuilder, speak: Speak) -> None:
    how = (
        "\nimport os, sys\nprint('', b'sdk/warm' in open('/proc/self/cmdline', 'rb').read(), os.environ['VIRTUAL_ENV'])"
    )
    tool = project.tool("greet", HEADER.format("'greeting-of-tests'") + USE + how)
    place = installed(project, tool).place
    client = speak(warm_python="true")

    eventually(lambda: text_of(client.call_tool("greet")) == f"hello True {place}\n")


@pytest.mark.parametrize(
    ("text", "names", "python"),
    [
        ('# dependencies = ["a[b]>=1", \'c; x == "y"\']\n', ("a[b]>=1", 'c; x == "y"'), ""),
        ('# requires-python = ">=3.11"\n# dependencies = [\n#   "a", # not "b"\n# ]\n', ("a",), ">=3.11"),
        ("# dependencies = []\n", None, ""),
        ("# requires-python = '>=3.11'\n", None, ""),
        ("# dependencies = names\n", (), "a header like dependencies"),
        ('# dependencies = ["--index-url=http://example.com"]\n', (), "a header like dependencies"),
    ],
)
def test_the_header_of_a_script_is_read(tmp_path: Path, text: str, names: tuple[str, ...] | None, python: str) -> None:
    script = tmp_path / "tool.py"
    script.write_text(f"import os\n\n# /// script\n{text}# ///\n", newline="\r\n")
    found = packages_of(str(tmp_path), str(script))

    assert (found.names if found else None) == names
    assert found is None or python in (found.python, found.lack.partition(" = ")[0])


def test_scripts_of_others_and_of_uv_need_none(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("greeting\n")
    for name, text in (("a.sh", "echo"), ("b", "#!/usr/bin/env -S uv run --script\n")):
        (tmp_path / name).write_text(text)
        assert packages_of(str(tmp_path), str(tmp_path / name)) is None


def test_validate_and_doctor_say_what_is_missing(project: ProjectBuilder) -> None:
    tool = project.tool("greet", HEADER.format("'greeting-of-tests'") + USE, description="Greet")
    project.tool("wave", PLAIN, description="Wave")
    project.write("requirements.txt", "greeting-of-tests\n")
    words = ("--project-root", str(project.root))
    validated, diagnosed = mcpgreen("validate", *words).stdout, mcpgreen("doctor", *words).stdout

    lack = "needs packages that are not installed yet"
    validated, diagnosed = " ".join(validated.split()), " ".join(diagnosed.split())  # without line breaks
    assert f"✗ tools/greet:1: it {lack}: greeting-of-tests → {REMEDY}" in validated
    assert re.search(rf"tools/wave:2:1: \S+ has no module greeting_of_tests → {re.escape(REMEDY)}", validated)
    assert f"⚠ requirements.txt {lack} → {REMEDY}" in diagnosed
    for path in (tool, project.root / "tools/wave"):
        installed(project, path)
    assert "not installed" not in mcpgreen("validate", *words).stdout + mcpgreen("doctor", *words).stdout


def test_a_bundle_installs_its_packages_when_it_is_started(
    project: ProjectBuilder, wheels: Path, tmp_path: Path
) -> None:
    path = path_with_uv()
    project.tool("greet", PLAIN, description="Greet")
    project.write("requirements.txt", "greeting-of-tests\n")
    done = mcpgreen("bundle", "--project-root", str(project.root), "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [bundle] = tmp_path.glob("*.mcpb")
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "installed")
    start = tmp_path / "installed/server/.mcpgreen/start.py"
    env = {"PATH": path, "UV_OFFLINE": "1", "UV_FIND_LINKS": str(wheels), "HOME": str(tmp_path)}

    def run(*words: str) -> str:
        command = [os.path.realpath(sys.executable), "-I", str(start), *words]
        return subprocess.run(command, env=env, input="", capture_output=True, text=True, timeout=60).stdout

    assert run() == ""  # the client leaves at once
    eventually(lambda: "all of its packages: installed" in run("deps"), within_secs=30)
    assert '"hello"' in run("run-tool", "greet")
