"""Scripts that call plain `jq`, on hosts that have it, that have gojq, and that have neither."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcpgreen.running.scripts import jq
from mcpgreen.settings.settings import load
from tests.cli.test_commands import mcpgreen
from tests.sdk.conftest import OWN_TOOL, path_without_jq  # noqa: F401 (a fixture)
from tests.support.client import Client, Speak
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

OWN_JQ = Path(jq.OWN_DIRECTORY) / "jq"
ASK = "jq -cn --args '$ARGS.positional' -- a --b"


@pytest.fixture
def bare(project: ProjectBuilder, speak: Speak, path_without_jq: str) -> Speak:  # noqa: F811
    """A client of a server on a host without jq and gojq."""

    def speak_there(**env: str) -> Client:
        return speak(env={"PATH": path_without_jq, **env})

    return speak_there


def a_program(directory: Path, name: str, script: str = "") -> str:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def found(path: str, **chosen: str) -> tuple[str, str]:
    return jq.find_json_tool(load(chosen, {}, {}), path)


def test_jq_is_preferred_then_gojq_then_our_own(tmp_path: Path) -> None:
    path = f"/nowhere:{tmp_path}"
    assert found(path) == ("jq", str(OWN_TOOL))
    gojq = a_program(tmp_path, "gojq")
    assert found(path) == ("gojq", gojq)
    real = a_program(tmp_path, "jq")
    assert found(path) == ("jq", real)


def test_who_starts_the_server_chooses_among_what_is_there(tmp_path: Path) -> None:
    path = str(tmp_path)
    real = a_program(tmp_path, "jq")
    assert found(path, json_tool="gojq") == ("jq", real)
    gojq = a_program(tmp_path, "gojq")
    assert found(path, json_tool="gojq") == ("gojq", gojq)
    assert found(path, json_tool="jq") == ("jq", real)
    assert found(path, json_tool="none", json_tool_bin=real) == ("none", "")
    assert found(path, json_tool_bin=gojq) == ("gojq", gojq)
    assert found(path, json_tool_bin=str(OWN_TOOL)) == ("jq", str(OWN_TOOL))
    assert found(path, json_tool="gojq", json_tool_bin=str(OWN_TOOL)) == ("gojq", str(OWN_TOOL))
    assert found(path, json_tool="gojq", json_tool_bin=path) == ("gojq", gojq)


@pytest.mark.parametrize("variable", ["MCPBASH_JSON_TOOL", "MCPGREEN_JSON_TOOL"])
def test_tools_use_the_program_that_was_chosen(
    project: ProjectBuilder, speak: Speak, tmp_path: Path, variable: str
) -> None:
    gojq = a_program(tmp_path, "gojq")
    a_program(tmp_path, "jq")
    project.tool("told", 'printf %s "$MCPBASH_JSON_TOOL $MCPBASH_JSON_TOOL_BIN $MCPBASH_MODE"')
    client = speak(env={"PATH": f"{tmp_path}:{os.environ['PATH']}", variable: "gojq"})
    assert text_of(client.call_tool("told")) == f"gojq {gojq} full"


def test_without_the_library_of_our_own_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has no wheels for some platforms. Scripts that ask for a JSON tool must not be given a broken one."""
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    assert found("/nowhere") == ("none", "")


def test_our_directory_is_the_last_one_and_only_where_there_is_no_jq(tmp_path: Path) -> None:
    assert jq.path_with_jq(f"/a:{tmp_path}") == f"/a:{tmp_path}:{jq.OWN_DIRECTORY}"
    a_program(tmp_path, "gojq")
    assert jq.path_with_jq(f"/a:{tmp_path}") == f"/a:{tmp_path}:{jq.OWN_DIRECTORY}"
    a_program(tmp_path, "jq")
    assert jq.path_with_jq(f"/a:{tmp_path}") == f"/a:{tmp_path}"


def test_ours_runs_gojq_where_that_is(tmp_path: Path) -> None:
    a_program(tmp_path, "gojq", 'printf "gojq %s\\n" "$@"; exit 7')
    done = completed([str(OWN_JQ), "-c", "a b"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (7, "gojq -c\ngojq a b\n")


def test_tools_find_one(project: ProjectBuilder, bare: Speak) -> None:
    project.tool("ask", f'{ASK}; "$MCPBASH_JSON_TOOL" -n 1; echo "$MCPBASH_JSON_TOOL_BIN"; echo "${{PATH##*:}}"')
    told = text_of(bare().call_tool("ask")).splitlines()
    assert told == ['["a","--b"]', "1", str(OWN_TOOL), jq.OWN_DIRECTORY]


def test_where_there_is_one_nothing_changes(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    a_program(tmp_path, "jq", "echo mine")
    path = f"{tmp_path}:{os.environ['PATH']}"
    project.tool("ask", 'jq; echo "$PATH"')
    assert text_of(speak(env={"PATH": path}).call_tool("ask")) == f"mine\n{path}\n"


def test_hooks_find_one(project: ProjectBuilder, bare: Speak) -> None:
    project.tool("show", 'echo "$MCP_SAID"')
    project.tool("barred", "echo")
    project.write("server.d/env.sh", f'export MCP_SAID="$({ASK})"').chmod(0o644)
    policy = f'mcp_tools_policy_check() {{ mcp_tools_error -32001 "$({ASK})"; [[ $1 == show ]]; }}'
    project.write("server.d/policy.sh", policy).chmod(0o644)
    register = """jq -n '{prompts: [{name: "mine", path: "any.txt"}], tools: []}' >/dev/null && return 0; return 1"""
    project.write("server.d/register.sh", f"#!/bin/bash\n{register}").chmod(0o644)
    client = bare(MCPGREEN_ALLOW_PROJECT_HOOKS="true")

    assert text_of(client.call_tool("show")) == '["a","--b"]\n'
    assert client.error("tools/call", {"name": "barred", "arguments": {}})["message"] == '["a","--b"]'


def test_an_env_sh_that_changes_the_path_gets_the_jq_that_it_brings(project: ProjectBuilder, bare: Speak) -> None:
    project.program("bin/jq", "echo mine")
    project.write("server.d/env.sh", 'export PATH="$PATH:$MCPGREEN_PROJECT_ROOT/bin"').chmod(0o644)
    project.tool("ask", 'jq; "$MCPBASH_JSON_TOOL_BIN"')
    assert text_of(bare().call_tool("ask")) == "mine\nmine\n"


def test_health_names_what_scripts_use(project: ProjectBuilder, path_without_jq: str) -> None:  # noqa: F811
    project.tool("any", "echo")
    for command in (["health"], ["registry", "status"]):
        done = mcpgreen(*command, "--project-root", str(project.root), env={"PATH": path_without_jq})
        assert json.loads(done.stdout)["jsonTool"] == "jq"
