"""What a script finds when it runs: variables, files, descriptors, its place in the process tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import ALL_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import CHECKOUT, Json, Start, Wire, text_of

SHOW_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def variables_of(client: Client, arguments: Json | None = None, **options: Any) -> dict[str, str]:
    return json.loads(text_of(client.call_tool("env", arguments, **options)))


@pytest.mark.requirement("G-environment")
@pytest.mark.parametrize(
    ("settings", "seen", "unseen"),
    [
        ({}, {"MCP_OWN"}, {"SECRET", "WANTED", "USER"}),
        ({"tool_env_mode": "nonsense"}, {"MCP_OWN"}, {"SECRET", "WANTED"}),
        ({"tool_env_mode": "allowlist", "tool_env_allowlist": "WANTED,ABSENT"}, {"MCP_OWN", "WANTED"}, {"SECRET"}),
        ({"tool_env_mode": "inherit", "tool_env_inherit_allow": "true"}, {"MCP_OWN", "WANTED", "SECRET"}, set()),
    ],
    ids=["minimal", "unknown", "allowlist", "inherit"],
)
def test_the_mode_decides_which_variables_a_tool_sees(
    project: ProjectBuilder, speak: Speak, settings: Json, seen: set[str], unseen: set[str]
) -> None:
    project.python_tool("env", SHOW_ENVIRONMENT)
    given = {"SECRET": "1", "WANTED": "2", "MCP_OWN": "3"}
    # Those that change nothing on stdio; what tools see does not depend on the transport.
    secrets = {"MCPBASH_STATE_KEY": "x" * 40, "MCPGREEN_HTTP_TOKEN": "y" * 40}
    variables = variables_of(speak(env=given | secrets, **settings))

    assert seen | {"PATH", "HOME", "TMPDIR", "LANG"} <= set(variables)
    assert not variables.keys() & unseen
    assert not {name for name in variables if name.endswith(("STATE_KEY", "HTTP_TOKEN"))}
    assert not set(variables.values()) & set(secrets.values())


@pytest.mark.requirement("G-environment")
def test_inheriting_everything_needs_a_confirmation(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("env", "env")
    error = speak(tool_env_mode="inherit").error("tools/call", {"name": "env"})

    assert error["code"] == -32602
    assert "INHERIT_ALLOW" in error["message"]


@pytest.mark.requirement("G-environment")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_tool_is_told_all_about_its_call(shared_project: ProjectBuilder, shared_speak: Speak, revision: str) -> None:
    project = shared_project
    path = project.root / "tools" / "env"
    if not path.exists():
        project.python_tool("env", SHOW_ENVIRONMENT, description="shows")
    variables = variables_of(
        shared_speak(revision), {"b": 1, "a": "\u20ac"}, meta={"progressToken": 5, "com.example/x": 1}
    )

    assert json.loads(variables["MCP_TOOL_ARGS_JSON"]) == {"b": 1, "a": "\u20ac"}
    assert json.loads(variables["MCP_TOOL_META_JSON"])["com.example/x"] == 1
    assert json.loads(variables["MCP_TOOL_METADATA_JSON"])["description"] == "shows"
    assert variables["MCP_TOOL_NAME"] == "env"
    assert variables["MCP_TOOL_PATH"] == str(path)
    assert variables["MCP_PROGRESS_TOKEN"] == "5"
    assert variables["MCPBASH_PROJECT_ROOT"] == variables["MCPGREEN_PROJECT_ROOT"] == str(project.root)
    assert variables["MCPBASH_SERVER_NAME"] == "test-project"
    assert os.path.isfile(os.path.join(variables["MCP_SDK"], "tool-sdk.sh"))
    assert variables["MCP_ROOTS_PATHS"] == str(project.root)
    assert variables["MCP_ROOTS_COUNT"] == "1"
    assert json.loads(variables["MCP_ROOTS_JSON"])[0]["uri"] == project.root.as_uri()


@pytest.mark.requirement("G-environment")
def test_a_tool_is_told_how_the_server_introduces_itself(project: ProjectBuilder, speak: Speak) -> None:
    about = {"name": "desk", "title": "The desk", "version": "2.1", "description": "Helps", "websiteUrl": "https://a.b"}
    project.write("server.d/server.meta.json", json.dumps(about))
    project.python_tool("env", SHOW_ENVIRONMENT)
    variables = variables_of(speak())

    words = ("NAME", "TITLE", "VERSION", "DESCRIPTION", "WEBSITE_URL")
    assert [variables[f"MCPBASH_SERVER_{word}"] for word in words] == list(about.values())


@pytest.mark.requirement("G-environment")
def test_what_no_variable_can_hold_keeps_no_tool_from_starting(project: ProjectBuilder, speak: Speak) -> None:
    about = {"name": "a\0b", "description": "\u20ac" * 100_000}
    project.write("server.d/server.meta.json", json.dumps(about))
    project.python_tool("env", SHOW_ENVIRONMENT)
    variables = variables_of(speak())

    assert variables["MCPBASH_SERVER_NAME"] == "a?b"
    assert about["description"].startswith(variables["MCPBASH_SERVER_DESCRIPTION"])


@pytest.mark.requirement("G-environment")
def test_a_setting_is_seen_under_both_names(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("env", SHOW_ENVIRONMENT)
    variables = variables_of(speak(env={"MCPBASH_MAX_LOGS_PER_MIN": "7"}))

    assert variables["MCPGREEN_MAX_LOGS_PER_MIN"] == variables["MCPBASH_MAX_LOGS_PER_MIN"] == "7"


@pytest.mark.requirement("G-spill")
@pytest.mark.parametrize(
    ("settings", "size", "is_spilled"),
    [({}, 60_000, False), ({}, 70_000, True), ({}, 3_000_000, True), ({"env_payload_threshold": 0}, 1, True)],
    ids=str,
)
def test_long_arguments_come_as_a_file(
    project: ProjectBuilder, speak: Speak, settings: Json, size: int, is_spilled: bool
) -> None:
    project.python_tool(
        "measure",
        "import json, os\npath = os.environ.get('MCP_TOOL_ARGS_FILE')\n"
        "text = open(path).read() if path else os.environ['MCP_TOOL_ARGS_JSON']\n"
        "print(json.dumps({'spilled': bool(path), 'variable': bool(os.environ['MCP_TOOL_ARGS_JSON']),"
        " 'size': len(json.loads(text)['x'])}))",
    )
    measured = speak(**settings).call_tool("measure", {"x": "y" * size})["structuredContent"]

    assert measured == {"spilled": is_spilled, "variable": not is_spilled, "size": size}


@pytest.mark.requirement("G-environment")
def test_a_shell_script_has_a_table_of_its_arguments(project: ProjectBuilder, speak: Speak) -> None:
    show = 'printf "%s|" "${MCP_TOOL_ARGS_TABLE-none}" "$MCP_TOOL_ARGS_JSON"'
    project.tool("bash", show)
    project.tool("sh", f"#!/bin/sh\n{show}")
    client = speak()

    def shown(tool: str, arguments: Json) -> list[str]:
        return text_of(client.call_tool(tool, arguments)).split("|")[:-1]

    table, text = shown("bash", {"name": "Ada", "size": {"width": 5}})
    assert table.split("\n") == [text, ".name=sAda", ".size=o", ".size.width=v5"]
    assert shown("sh", {"a": 1})[0] == '{"a":1}\n.a=v1'
    assert shown("bash", {}) == ["", "{}"]
    assert shown("bash", {"a": "x" * 5000})[0] == ""


@pytest.mark.requirement("G-process")
def test_a_tool_starts_in_the_project_without_arguments_or_input(project: ProjectBuilder, client: Wire) -> None:
    project.tool("where", 'echo "$PWD|$#|$(wc -c)"')

    assert text_of(client.call_tool("where")) == f"{project.root}|0|0\n"


@pytest.mark.requirement("G-process")
def test_a_tool_cannot_swallow_the_input_of_the_server(project: ProjectBuilder, client: Wire) -> None:
    project.tool("greedy", "cat")
    call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "greedy"}}
    client.send(call, *({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"} for number in range(20)))

    assert text_of(client.response("c")["result"]) == ""
    for number in range(20):
        assert client.response(f"p{number}")["result"] == {}


@pytest.mark.requirement("G-process")
def test_a_tool_inherits_no_descriptor_but_its_own(project: ProjectBuilder, client: Wire) -> None:
    project.python_tool(
        "list",
        "import json, os\nfound = {int(n): os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{n}')}\nprint(json.dumps(found))",
    )
    for _ in range(2):
        descriptors = json.loads(text_of(client.call_tool("list")))
        assert set(descriptors) == {"0", "1", "2", "97"}
        assert descriptors["0"] == "/dev/null"


@pytest.mark.requirement("G-process")
def test_a_tool_leads_a_session_of_its_own(project: ProjectBuilder, client: Wire) -> None:
    project.python_tool("session", "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))")

    assert text_of(client.call_tool("session")) == "True\n"


@pytest.mark.requirement("G-process")
def test_signals_are_as_a_script_expects_them(project: ProjectBuilder, client: Wire) -> None:
    project.python_tool(
        "signals",
        "fields = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "stopping = sum(1 << number - 1 for number in (1, 2, 3, 15))\n"
        "print(int(fields['SigBlk'], 16), int(fields['SigIgn'], 16) & stopping)",
    )

    assert text_of(client.call_tool("signals")) == "0 0\n"


@pytest.mark.requirement("G-process")
def test_a_tool_ignores_nothing_that_the_servers_parent_ignores(project: ProjectBuilder, start: Start) -> None:
    project.tool("ignored", "while read -r key value; do [ $key != SigIgn: ] || echo $value; done </proc/self/status")
    handler = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        wire = start()
    finally:
        signal.signal(signal.SIGUSR1, handler)
    wire.handshake()

    ignored = int(text_of(wire.call_tool("ignored")), 16)
    # Python itself ignores a closed pipe, and a script would write into one for ever.
    assert not ignored & (1 << signal.SIGUSR1 - 1 | 1 << signal.SIGPIPE - 1)


@pytest.mark.requirement("G-process")
def test_a_background_job_does_not_outlive_its_tool_nor_hold_up_the_answer(
    project: ProjectBuilder, client: Wire
) -> None:
    project.tool("leaves", "sleep 600 & echo $!")
    pid = int(text_of(client.call_tool("leaves")))

    assert not is_alive(pid)


@pytest.mark.requirement("G-process")
def test_the_scratch_files_of_a_call_are_gone_afterwards(project: ProjectBuilder, client: Wire) -> None:
    project.tool("where", 'echo x > "$MCPBASH_DEBUG_LOG"; echo "$MCPBASH_DEBUG_LOG"; echo "$MCPBASH_STATE_DIR"')
    file, directory = text_of(client.call_tool("where")).split()

    eventually(lambda: not os.path.exists(file))
    assert os.listdir(directory) == []


def test_scratch_files_can_be_made_after_somebody_has_cleaned_up(project: ProjectBuilder, client: Wire) -> None:
    project.tool("where", 'echo "${MCP_TOOL_ERROR_FILE%/*}"')
    project.tool("fail", 'echo \'{"code":-32001,"message":"chosen"}\' > "$MCP_TOOL_ERROR_FILE"; exit 1')
    shutil.rmtree(text_of(client.call_tool("where")).strip())

    error = client.error("tools/call", {"name": "fail"})
    assert (error["code"], error["message"]) == (-32001, "chosen")


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_scratch_files_of_a_call_are_kept_if_that_is_wanted(
    project: ProjectBuilder, start: Start, is_killed: bool
) -> None:
    project.tool("where", 'echo said > "$MCPBASH_DEBUG_LOG"; echo $PPID "$MCPBASH_DEBUG_LOG"')
    wire = start(preserve_state="true").greeted()
    server, log = text_of(wire.call_tool("where")).split()
    guardians = [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
    if is_killed:
        wire.kill()
    else:
        assert wire.stop() == 0
        eventually(lambda: f"state is kept in {Path(log).parent}" in wire.stderr)
    eventually(lambda: not any(map(is_alive, guardians)))

    assert Path(log).read_text(encoding="utf-8") == "said\n"
    shutil.rmtree(Path(log).parent)


def test_python_finds_the_sdk_and_its_children_find_what_the_person_has(project: ProjectBuilder, speak: Speak) -> None:
    show = "import os, subprocess, sys\nimport mcp_tool\n"
    show += "child = subprocess.run(['/bin/sh', '-c', 'echo ${PYTHONPATH-unset}'], capture_output=True, text=True)\n"
    show += "mcp_tool.emit_json([os.path.basename(mcp_tool.__file__), child.stdout.strip(), sys.path.count('/own')])"
    project.python_tool("show", show)
    project.tool("plain", 'printf %s "$PYTHONPATH"')
    own = {"env": {"PYTHONPATH": f"{CHECKOUT}:/own"}, "tool_env_mode": "allowlist", "tool_env_allowlist": "PYTHONPATH"}

    assert json.loads(text_of(speak().call_tool("show"))) == ["mcp_tool.py", "unset", 0]
    client = speak(**own)
    assert json.loads(text_of(client.call_tool("show"))) == ["mcp_tool.py", f"{CHECKOUT}:/own", 1]
    ours = text_of(client.call_tool("plain")).rpartition(":")[2]
    names = {name for name in os.listdir(ours) if name != "__pycache__"}
    assert names and all(name.startswith("mcp_tool") for name in names)
