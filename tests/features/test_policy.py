"""`server.d/policy.sh`: the project's own word on each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import ways
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json, Start, Wire, text_of

way, project = ways.way, ways.project

NOT_PUBLIC = """
mcp_tools_policy_check() {
  [[ $1 == public ]]
}
"""


@pytest.fixture
def ask(project: ProjectBuilder, start: Start) -> Callable[..., tuple[Json, Wire]]:
    """The answer to a call under this policy."""
    project.tool("public", "echo hello")
    project.tool("secret", "echo > ran", description="hush")

    def call_under(policy: str, name: str, *, mode: int = 0o644, **options: Any) -> tuple[Json, Wire]:
        project.write("server.d/policy.sh", policy).chmod(mode)
        wire = start(**options).greeted()
        return wire.request("tools/call", {"name": name, "arguments": {}}), wire

    return call_under


def ran(project: ProjectBuilder) -> bool:
    return (project.root / "ran").exists()


def test_what_the_policy_allows_runs(ask: Callable[..., tuple[Json, Wire]]) -> None:
    assert text_of(ask(NOT_PUBLIC, "public")[0]["result"]) == "hello\n"


def test_what_it_refuses_does_not_run(project: ProjectBuilder, ask: Callable[..., tuple[Json, Wire]]) -> None:
    answer, _ = ask(NOT_PUBLIC, "secret")

    assert answer["error"] == {"code": -32602, "message": "Tool 'secret' blocked by policy"}
    assert not ran(project)


def test_refused_tools_are_listed_all_the_same(ask: Callable[..., tuple[Json, Wire]]) -> None:
    _, wire = ask(NOT_PUBLIC, "secret")

    assert [tool["name"] for tool in wire.result("tools/list")["tools"]] == ["public", "secret"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            """mcp_tools_error -32001 'Ask "me"' '{"why":[1]}'""",
            {"code": -32001, "message": 'Ask "me"', "data": {"why": [1]}},
        ),
        ("mcp_tools_error -32001 'No.'", {"code": -32001, "message": "No."}),
        ("mcp_tools_error -32001 'No.' because", {"code": -32001, "message": "No.", "data": "because"}),
        ("mcp_tools_error huh 'No.'", {"code": -32602, "message": "No."}),
        (
            """_MCP_TOOLS_ERROR_CODE=-32001 _MCP_TOOLS_ERROR_MESSAGE='Ask "me"' _MCP_TOOLS_ERROR_DATA='{"why":[1]}'""",
            {"code": -32001, "message": 'Ask "me"', "data": {"why": [1]}},
        ),
        ("_MCP_TOOLS_ERROR_MESSAGE=No.", {"code": -32602, "message": "No."}),
        ("_MCP_TOOLS_ERROR_MESSAGE=First; mcp_tools_error -32001 Last", {"code": -32001, "message": "Last"}),
        ("mcp_tools_error -32001 First; _MCP_TOOLS_ERROR_MESSAGE=Last", {"code": -32001, "message": "Last"}),
    ],
)
def test_it_can_choose_the_error(ask: Callable[..., tuple[Json, Wire]], words: str, error: Json) -> None:
    """Some policies for mcp-bash set what its function sets."""
    answer, _ = ask(f"set -u; mcp_tools_policy_check() {{ {words}; return 1; }}", "secret")

    assert answer["error"] == error


def test_variables_of_the_server_choose_no_error(ask: Callable[..., tuple[Json, Wire]]) -> None:
    answer, _ = ask(NOT_PUBLIC, "secret", env={"_MCP_TOOLS_ERROR_MESSAGE": "mine"})

    assert answer["error"] == {"code": -32602, "message": "Tool 'secret' blocked by policy"}


def test_it_knows_the_tool_and_the_server_s_variables(ask: Callable[..., tuple[Json, Wire]]) -> None:
    policy = """
    set -euo pipefail
    mcp_tools_policy_check() {
      mcp_tools_error -32001 "$1: $(mcp_json_extract_optional "$2" -r .description none)," \\
        "\\"$(mcp_json_extract_optional "$2" -r .nothing dflt) $POLICY_MOOD ${MCPGREEN_STATE_KEY:-}\\""
      return 1
    }
    """
    answer, _ = ask(policy, "secret", env={"POLICY_MOOD": "stern", "MCPGREEN_STATE_KEY": "x" * 40})

    assert answer["error"] == {"code": -32001, "message": "secret: hush,", "data": "dflt stern "}


def test_the_allow_list_comes_first(project: ProjectBuilder, ask: Callable[..., tuple[Json, Wire]]) -> None:
    answer, _ = ask("touch asked\nmcp_tools_policy_check() { return 0; }", "secret", tool_allowlist="public")

    assert "not in MCPGREEN_TOOL_ALLOWLIST" in answer["error"]["message"]
    assert not (project.root / "asked").exists()


@pytest.mark.parametrize("policy", ["", "other() { :; }", "return 0"])
def test_without_a_check_the_built_in_policy_decides(ask: Callable[..., tuple[Json, Wire]], policy: str) -> None:
    answer, wire = ask(policy, "public")
    wire.call_tool("public")

    assert "result" in answer
    eventually(lambda: "does not define mcp_tools_policy_check" in wire.stderr)
    assert wire.stderr.count("does not define") == 1


@pytest.mark.parametrize(
    "policy",
    [
        "if then",
        "exit 0",
        "exit 3",
        "return 3",
        "mcp_tools_policy_check() { exit 0; }",
        "mcp_tools_policy_check() { kill -9 $$; }",
        "set -u; mcp_tools_policy_check() { echo $UNHEARD_OF; return 0; }",
    ],
)
def test_no_clear_yes_is_a_no(ask: Callable[..., tuple[Json, Wire]], policy: str) -> None:
    answer, wire = ask(policy, "public")

    assert answer["error"] == {"code": -32602, "message": "Tool 'public' blocked by policy"}
    eventually(lambda: "policy.sh could not decide about public" in wire.stderr)


def test_what_it_prints_does_no_harm(ask: Callable[..., tuple[Json, Wire]]) -> None:
    answer, _ = ask("echo noise; mcp_tools_policy_check() { echo noise; echo noise >&2; }", "public")

    assert text_of(answer["result"]) == "hello\n"


def test_a_policy_that_others_may_write_to_is_not_sourced_and_refuses_every_call(
    project: ProjectBuilder, ask: Callable[..., tuple[Json, Wire]]
) -> None:
    """It was as if there were none, so whoever could spoil its mode could switch it off."""
    answer, wire = ask(f"touch asked\n{NOT_PUBLIC}", "public", mode=0o666)
    wire.error("tools/call", {"name": "secret"})

    assert answer["error"] == {
        "code": -32602,
        "message": "Tool 'public' blocked by policy: policy.sh is not trusted: "
        "it can be written to by others (run mcpgreen validate --fix)",
    }
    assert not ran(project)
    assert not (project.root / "asked").exists()
    eventually(lambda: wire.stderr.count("policy.sh is not trusted") == 2)  # the two calls that were refused


def test_it_may_come_change_and_go_while_the_server_runs(project: ProjectBuilder, client: Wire) -> None:
    project.tool("public", "echo")
    client.call_tool("public")
    path = project.write("server.d/policy.sh", "mcp_tools_policy_check() { false; }")
    path.chmod(0o644)
    client.error("tools/call", {"name": "public"})
    path.write_text("mcp_tools_policy_check() { true; }", encoding="utf-8")
    client.call_tool("public")
    path.write_text("mcp_tools_policy_check() { false; }", encoding="utf-8")
    path.unlink()

    client.call_tool("public")


def test_cancelling_the_call_stops_the_policy(project: ProjectBuilder, client: Wire) -> None:
    project.tool("public", "echo")
    project.write("server.d/policy.sh", "echo $$ > pid; sleep 600").chmod(0o644)
    id = client.start_request("tools/call", {"name": "public"})
    pid = eventually(lambda: (project.root / "pid").exists() and project.read("pid").strip())
    client.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not is_alive(pid))
    client.settle()
    assert not [message for message in client.seen if message.get("id") == id]


def test_a_policy_that_takes_too_long_is_a_no(ask: Callable[..., tuple[Json, Wire]]) -> None:
    answer, wire = ask("echo $$ > pid; sleep 600", "public", POLICY_SECS=1)

    assert answer["error"]["message"] == "Tool 'public' blocked by policy"
    eventually(lambda: "it took longer than 1 s" in wire.stderr)
