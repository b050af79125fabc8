"""Who calls, without a pipe: sessions, sealed states, parked scripts, scopes, and what scripts are told of a caller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.engine.server import Server
from mcpgreen.errors import Denied, InsufficientScope
from mcpgreen.links.principal import MAX_CLAIMS_BYTES, Principal
from tests.support.fake_link import FakeLink, serving
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM
from tests.support.waiting import is_alive

ADA = Principal("https://issuer.example|ada", frozenset({"files:read", "files:write"}), {"sub": "ada"})
BOB = Principal("https://issuer.example|bob", frozenset({"files:read"}), {"sub": "bob"})
SHOW = 'printf %s "${MCP_AUTH_JSON-nobody}"'
ASKER = f"""{ASK}
note('pids', os.getpid())
print(ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content']['name'], os.environ.get('MCP_AUTH_JSON'))
"""
ANSWER = {"who": {"action": "accept", "content": {"name": "Ada"}}}


@pytest.fixture
def server(project: ProjectBuilder) -> Iterator[Server]:
    project.tool("show", SHOW)
    project.tool("write", "echo written", scopes=["files:read", "files:write"])
    project.forked_tool("warm", "import os\nprint(os.environ.get('MCP_AUTH_JSON', 'nobody'), end='')")
    project.python_tool("asker", ASKER, scopes=["files:write"])
    project.python_tool("asks-all", ASKER)
    project.prompt("plan.txt", "Plan it", meta={"arguments": [{"name": "when"}], "scopes": ["files:write"]})
    project.program("prompts/who.sh", SHOW)
    project.program("prompts/who.completion.sh", """printf '["%s"]' "$(printf %s "$MCP_AUTH_JSON" | tr -d '"')\"""")
    with serving(project.root, resources_poll_interval_secs=0.05) as server:
        yield server


def text_of(answer: dict[str, Any]) -> str:
    text: str = answer["result"]["content"][0]["text"]
    return text


def call(server: Server, name: str, principal: Principal | None = None, **more: Any) -> dict[str, Any]:
    link = FakeLink(server, principal=principal)
    answer = link.ask_stateless("tools/call", {"name": name, **more}, id=1, capabilities=FORM)
    link.close()
    return answer


def test_principals_are_the_same_if_their_names_are() -> None:
    assert Principal("a", frozenset(), {"exp": 1}) == Principal("a", None, {"exp": 2})
    assert Principal("a") != Principal("b")
    assert len({Principal("a", frozenset()), Principal("a")}) == 1


def test_claims_that_are_too_long_are_no_claims() -> None:
    assert len(Principal("a", claims={"x": "y" * (MAX_CLAIMS_BYTES - 8)}).claims_json) == MAX_CLAIMS_BYTES
    with pytest.raises(ValueError, match="longer than 16384"):
        _ = Principal("a", claims={"x": "y" * (MAX_CLAIMS_BYTES - 7)}).claims_json


def test_a_session_belongs_to_the_caller_who_opened_it(server: Server) -> None:
    first = FakeLink(server, principal=ADA)
    first.initialize()

    assert first.session.principal == ADA
    for somebody_else in (BOB, None):
        with pytest.raises(Denied, match="another caller"):
            FakeLink(server, session=first.session, principal=somebody_else)
    renewed = Principal(ADA.name, frozenset(), {"sub": "ada", "jti": "2"})
    again = FakeLink(server, session=first.session, principal=renewed)
    assert "error" in again.ask("tools/call", {"name": "write"}, id=1)  # with what the new token allows
    assert json.loads(text_of(again.ask("tools/call", {"name": "show"}, id=2)))["jti"] == "2"


def test_a_session_without_a_caller_cannot_be_used_by_a_caller(server: Server) -> None:
    first = FakeLink(server)
    with pytest.raises(Denied):
        FakeLink(server, session=first.session, principal=ADA)


def test_a_sealed_state_is_good_for_its_principal_alone(server: Server, project: ProjectBuilder) -> None:
    state = call(server, "asker", ADA)["result"]["requestState"]
    (pid,) = project.read("pids").split()

    for somebody_else in (BOB, None, Principal("https://issuer.example|ad")):
        refused = call(server, "asker", somebody_else, requestState=state, inputResponses=ANSWER)
        assert refused["error"]["message"] == "Invalid requestState"
        assert is_alive(pid)
    assert text_of(call(server, "asker", ADA, requestState=state, inputResponses=ANSWER)).startswith("Ada")


def test_a_state_without_a_caller_is_refused_to_a_caller(server: Server) -> None:
    state = call(server, "asks-all")["result"]["requestState"]

    refused = call(server, "asks-all", ADA, requestState=state, inputResponses=ANSWER)
    assert refused["error"]["message"] == "Invalid requestState"
    assert text_of(call(server, "asks-all", requestState=state, inputResponses=ANSWER)) == "Ada None\n"


def test_a_parked_script_waits_for_a_token_that_still_allows_it(server: Server, project: ProjectBuilder) -> None:
    state = call(server, "asker", ADA)["result"]["requestState"]
    reduced = Principal(ADA.name, frozenset({"files:read"}), {})

    refused = call(server, "asker", reduced, requestState=state, inputResponses=ANSWER)
    assert refused["error"]["data"]["missingScopes"] == ["files:write"]
    assert is_alive(project.read("pids").split()[0])
    assert "Ada" in text_of(call(server, "asker", ADA, requestState=state, inputResponses=ANSWER))


@pytest.mark.parametrize("is_stateless", [False, True], ids=["with a session", "without a session"])
def test_a_tool_is_refused_to_a_caller_without_its_scopes(server: Server, is_stateless: bool) -> None:
    link = FakeLink(server, principal=BOB)
    if is_stateless:
        answer = link.ask_stateless("tools/call", {"name": "write"}, id=1)
    else:
        link.initialize()
        answer = link.ask("tools/call", {"name": "write"}, id=1)

    assert answer["error"] == {
        "code": -32600,
        "message": "This needs the scope files:write, which the caller does not have.",
        "data": {"requiredScopes": ["files:read", "files:write"], "missingScopes": ["files:write"]},
    }


@pytest.mark.parametrize("principal", [ADA, None, Principal("token:1")], ids=["with the scopes", "nobody", "all"])
def test_a_tool_is_run_for_a_caller_with_its_scopes(server: Server, principal: Principal | None) -> None:
    assert text_of(call(server, "write", principal)) == "written\n"


def test_a_refusal_knows_what_is_missing_and_what_is_required() -> None:
    with pytest.raises(InsufficientScope) as refused:
        BOB.require(["files:write", "files:read"])

    assert refused.value.data == {
        "requiredScopes": ["files:write", "files:read"],
        "missingScopes": ["files:write"],
    }


def test_tools_stay_listed_and_their_scopes_are_not_shown(server: Server) -> None:
    listed = FakeLink(server, principal=BOB).ask_stateless("tools/list", {}, id=1)["result"]["tools"]

    assert "write" in [tool["name"] for tool in listed]
    assert not any("scopes" in tool for tool in listed)


def test_a_prompt_and_its_completion_are_refused_without_its_scopes(server: Server) -> None:
    link = FakeLink(server, principal=BOB)
    ref = {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "when", "value": ""}}

    for method, params in (("prompts/get", {"name": "plan"}), ("completion/complete", ref)):
        refused = link.ask_stateless(method, params, id=1)["error"]
        assert refused["data"]["requiredScopes"] == ["files:write"]
        assert "result" in FakeLink(server, principal=ADA).ask_stateless(method, params, id=1)


@pytest.mark.parametrize("tool", ["show", "warm"])
def test_a_script_knows_the_claims_of_each_caller(server: Server, tool: str) -> None:
    for principal in (ADA, BOB):
        assert json.loads(text_of(call(server, tool, principal))) == principal.claims
    assert text_of(call(server, tool)) == "nobody"


def test_a_prompt_program_and_a_completion_know_the_caller(server: Server) -> None:
    link = FakeLink(server, principal=ADA)
    made = link.ask_stateless("prompts/get", {"name": "who"}, id=1)["result"]
    assert json.loads(made["messages"][0]["content"]["text"]) == ADA.claims
    ref = {"ref": {"type": "ref/prompt", "name": "who"}, "argument": {"name": "x", "value": ""}}
    suggested = link.ask_stateless("completion/complete", ref, id=2)["result"]["completion"]["values"]
    assert suggested == ["{sub:ada}"]


def test_claims_in_the_servers_environment_are_not_passed_on(
    project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool of a remote server may start a server of its own: its callers are not those of the first one."""
    monkeypatch.setenv("MCP_AUTH_JSON", '{"sub":"root"}')
    project.tool("show", SHOW)
    project.provider("who", f"#!/bin/sh\n{SHOW}\n")
    with serving(project.root) as server:
        assert text_of(call(server, "show")) == "nobody"
        read = FakeLink(server).ask_stateless("resources/read", {"uri": "who://x"}, id=1)
        assert read["result"]["contents"][0]["text"] == "nobody"


def test_a_provider_is_asked_for_each_principal(project: ProjectBuilder) -> None:
    """Also where subscriptions look: what is read for one is no answer for somebody else."""
    project.provider("who", f'#!/bin/sh\necho "${{MCP_AUTH_JSON-nobody}}" >> seen\n{SHOW}\n')
    with serving(project.root, resources_poll_interval_secs=0) as server:
        for principal in (ADA, BOB):
            link = FakeLink(server, principal=principal)
            read = link.ask_stateless("resources/read", {"uri": "who://x"}, id=1)
            assert json.loads(read["result"]["contents"][0]["text"]) == principal.claims
            link.initialize()
            assert "result" in link.ask("resources/subscribe", {"uri": "who://x"}, id=2)

        assert sorted(project.read("seen").split()) == sorted([ADA.claims_json] * 2 + [BOB.claims_json] * 2)
