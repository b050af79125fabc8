"""Providers as shell scripts and project providers start them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import mcpgreen
from tests.providers.conftest import Desk
from tests.providers.site import Site
from tests.support.client import Speak
from tests.support.foreign_modules import AT_START, plant_traps
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

PACKAGE = Path(mcpgreen.__file__).resolve().parent


def run(*command: str, cwd: Path | None = None, **env: str) -> tuple[int, bytes, str]:
    """Run without anything of the checkout in the environment."""
    done = completed(
        command, cwd=cwd, env={"PATH": os.environ["PATH"], "MCPGREEN_PYTHON": sys.executable, **env}, encoding=None
    )
    return done.returncode, done.stdout, done.stderr.decode("utf-8")


@pytest.mark.parametrize("how", [[], ["bash"], ["sh"]], ids=["directly", "bash", "sh"])
def test_a_script_runs_its_provider(tmp_path: Path, how: list[str]) -> None:
    script = str(PACKAGE / "providers" / "echo.sh")

    assert run(*how, script, "echo://a%20b%00%ff+%c3%a4", cwd=tmp_path) == (0, b"a b\x00\xff+\xc3\xa4", "")


def test_modules_in_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    """The working directory is the project, where a file may well be called ssl.py or mcpgreen/__init__.py."""
    (tmp_path / "mcpgreen").mkdir()
    for name in ("mcpgreen/__init__.py", "importlib.py", "os.py", "urllib.py"):
        (tmp_path / name).write_text("raise SystemExit('wrong module')\n", encoding="utf-8")

    assert run(str(PACKAGE / "providers" / "echo.sh"), "echo://x", cwd=tmp_path) == (0, b"x", "")


@pytest.mark.parametrize("python_path", [":/nonexist:", ".", "lib", "/none::./lib", ":", "/none:lib", "/a b:lib"])
@pytest.mark.parametrize("program", ["providers/echo.sh", "sdk/json-tool", "page"])
def test_nor_are_they_by_an_empty_or_relative_part_of_the_path(tmp_path: Path, program: str, python_path: str) -> None:
    """Python imports some of these before it runs anything."""
    trace = plant_traps(tmp_path, *AT_START)
    page = f". '{PACKAGE}/sdk/tool-sdk.sh'; . '{PACKAGE}/sdk/ui-sdk.sh'; mcp_ui_table '{{}}'; echo \"$PYTHONPATH\""
    command = {
        "providers/echo.sh": [str(PACKAGE / program), "echo://x"],
        "sdk/json-tool": [str(PACKAGE / program), "-n", "1"],
        "page": ["bash", "-c", page],
    }[program]
    status, printed, error = run(*command, cwd=tmp_path, PYTHONPATH=python_path)

    assert (status, error) == (0, "")
    assert not trace.exists()
    assert program != "page" or printed.decode().endswith(f"{python_path}\n")


def test_a_script_runs_from_a_directory_with_spaces_and_through_a_relative_path(tmp_path: Path) -> None:
    place = tmp_path / "my place"
    place.mkdir()
    (place / "mcpgreen").symlink_to(PACKAGE)

    assert run("bash", "mcpgreen/providers/echo.sh", "echo://x", cwd=place, CDPATH="/tmp") == (0, b"x", "")


@pytest.mark.parametrize("arguments", [[], ["echo://a", "b"], ["http://a"], ["ECHO:a"], [""]])
def test_arguments_that_make_no_sense_are_refused(arguments: list[str]) -> None:
    status, content, reason = run(str(PACKAGE / "providers" / "echo.sh"), *arguments)

    assert (status, content) == (4, b"")
    assert "Traceback" not in reason and reason


def test_the_https_script_fetches(desk: Desk, site: Site) -> None:
    """The way that shell tools download."""
    settings = {"MCPBASH_HTTPS_ALLOW_HOSTS": "127.0.0.1", "MCPBASH_HTTPS_TIMEOUT": "30"}
    given = {**settings, "SSL_CERT_FILE": desk.env["SSL_CERT_FILE"], "MCPGREEN_NET_ALLOW_ADDRESSES": "127.0.0.1"}
    script = str(PACKAGE / "providers" / "https.sh")

    assert run("bash", script, f"https://127.0.0.1:{site.port}/ok", **given) == (0, b"caf\xc3\xa9\n\x00\xff\n", "")
    assert run(script, f"https://127.0.0.1:{site.port}/near", **given)[2].startswith("redirect:https://127.0.0.1")
    assert run("bash", script, "http://127.0.0.1/", **given)[0] == 4


def test_a_tool_finds_the_providers_and_a_python_for_them(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("greet", 'exec "$MCPBASH_HOME/providers/echo.sh" "echo://hello%20there"')
    client = speak()

    assert text_of(client.call_tool("greet")) == "hello there"


def test_the_python_that_the_operator_chose_is_left_alone(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("show", 'echo "$MCPGREEN_PYTHON"')
    client = speak(env={"MCPGREEN_PYTHON": "/chosen/python"})

    assert text_of(client.call_tool("show")).strip() == "/chosen/python"
