"""OAuth over HTTP, as a client meets it: challenges, metadata, scopes, and what belongs to whom."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.support.http import HttpClient, HttpServer
from tests.support.issuer import RESOURCE, Issuer, encoded
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, FORM
from tests.support.waiting import eventually
from tests.transports.http.test_legacy_sse import Legacy

SKEW_SECS = 60  # as the setting has it
WHO = 'printf "%s" "$MCP_AUTH_JSON"'
ASKER = f"""{ASK}
print(ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content']['name'])
"""
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


def trusting(project: ProjectBuilder, issuer: Issuer) -> dict[str, str]:
    """The settings of a server that takes the tokens of this issuer."""
    keys = project.write("keys.json", json.dumps({"keys": issuer.keys}))
    return {"http_oauth_issuer": issuer.name, "http_oauth_jwks_url": str(keys), "http_public_url": RESOURCE}


@pytest.fixture
def server(project: ProjectBuilder, issuer: Issuer) -> Iterator[HttpServer]:
    project.tool("who", WHO)
    project.tool("write", "echo written", scopes=["files:write"])
    project.python_tool("asker", ASKER)
    with HttpServer(project.root, **trusting(project, issuer)) as server:
        yield server


def without_algorithm(issuer: Issuer) -> str:
    return f"{encoded({'alg': 'none', 'kid': 'first'})}.{encoded(issuer.claims())}."


def test_who_has_no_token_is_told_where_to_get_one(server: HttpServer) -> None:
    reply = server.stateless().start("server/discover")

    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{METADATA}"'


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
def test_the_metadata_says_who_gives_tokens_and_which_scopes_there_are(
    server: HttpServer, issuer: Issuer, path: str
) -> None:
    reply = server.client().send("GET", path=path)

    assert (reply.status, reply.type) == (200, "application/json")
    document = json.loads(reply.body)
    assert document["resource"] == RESOURCE
    assert document["authorization_servers"] == [issuer.name]
    assert document["scopes_supported"] == ["files:write"]


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda issuer: issuer.token(exp=1), id="expired"),
        pytest.param(lambda issuer: issuer.token(aud="https://other.example.com/mcp"), id="for somebody else"),
        pytest.param(
            lambda issuer: issuer.token(key="second", headers={"kid": "first"}), id="with a foreign signature"
        ),
        pytest.param(without_algorithm, id="without a signature"),
        pytest.param(lambda issuer: "nonsense", id="no token at all"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_bad_token_is_refused(server: HttpServer, issuer: Issuer, token: Any, method: str) -> None:
    client = server.stateless(token=token(issuer))

    reply = client.start("server/discover") if method == "POST" else client.send(method)

    assert reply.status == 401
    assert 'error="invalid_token"' in reply.headers["WWW-Authenticate"]


def test_a_script_knows_who_calls_and_never_the_token(server: HttpServer, issuer: Issuer) -> None:
    token = issuer.token(sub="ada", team="engines")

    text = server.stateless(token=token).call_tool("who")["content"][0]["text"]

    assert json.loads(text)["sub"] == "ada"
    assert json.loads(text)["team"] == "engines"
    assert token not in text


@pytest.mark.parametrize("is_stateless", [True, False], ids=["stateless", "with a session"])
def test_a_scope_too_few_is_403_with_the_scopes_that_are_needed(
    server: HttpServer, issuer: Issuer, is_stateless: bool
) -> None:
    token = issuer.token(scope="files:read")
    client = server.stateless(token=token) if is_stateless else server.session(token=token)

    reply = client.start_tool("write")

    assert reply.status == 403
    challenge = reply.headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="files:write"' in challenge
    assert METADATA in challenge
    assert reply.error()["data"]["missingScopes"] == ["files:write"]


COUNTER = """#!/bin/bash
source "${MCP_SDK:?}/tool-sdk.sh"
count=0
while mcp_next_call; do mcp_answer "$((count += 1)) $$ $(mcp_auth_get .sub)"; done
"""


@pytest.mark.parametrize("is_stateless", [True, False], ids=["stateless", "with a session"])
def test_a_process_that_stays_for_a_caller_serves_no_other(
    project: ProjectBuilder, server: HttpServer, issuer: Issuer, is_stateless: bool
) -> None:
    project.tool("count", COUNTER, stays="session")
    connect = server.stateless if is_stateless else server.session
    people = {name: connect(token=issuer.token(sub=name)) for name in ("ada", "bob")}
    calls = ("ada", "ada", "bob", "ada")
    served = [people[name].call_tool("count")["content"][0]["text"].split() for name in calls]

    assert [(count, name) for count, _, name in served] == [("1", "ada"), ("2", "ada"), ("1", "bob"), ("3", "ada")]
    assert served[0][1] == served[1][1] == served[3][1] != served[2][1]


BLOCK = "#!/bin/sh\n# mcp:\n#   scopes:\n#     - admin\necho RAN\n"
PROTECTED_TOOLS = {
    "block": (BLOCK, '{"description": "d"}'),
    "gap": ("#!/bin/sh\n# mcp:\n#  description: d\n\n#  scopes: [admin]\necho RAN\n", None),
    "capitals": ("#!/bin/sh\n# MCP:\n#  scopes: [admin]\necho RAN\n", None),
    "nested": ("#!/bin/sh\necho RAN\n", '{"auth": {"scopes": ["admin"]}}'),
    "twice": ("#!/bin/sh\necho RAN\n", r'{"scopes": ["admin"], "s\u0063opes": []}'),
}


def test_no_way_to_write_scopes_opens_a_tool_or_prompt(project: ProjectBuilder, issuer: Issuer) -> None:
    """Scopes that were not understood were ignored, so that every caller could run the tool."""
    for name, (script, description) in PROTECTED_TOOLS.items():
        for kind in ("tools", "prompts"):
            project.write(f"{kind}/{name}.sh", script).chmod(0o755)
            if description is not None:
                project.write(f"{kind}/{name}.meta.json", description)
    with HttpServer(project.root, **trusting(project, issuer)) as server:
        client = server.stateless(token=issuer.token(scope="user"))
        for name in PROTECTED_TOOLS:
            assert "RAN" not in json.dumps(client.request("tools/call", {"name": name, "arguments": {}}))
            assert "RAN" not in json.dumps(client.request("prompts/get", {"name": name, "arguments": {}}))
        admin = server.stateless(token=issuer.token(scope="admin"))
        assert "RAN" in json.dumps(admin.result("tools/call", {"name": "block", "arguments": {}}))
        assert "RAN" in json.dumps(admin.result("prompts/get", {"name": "block", "arguments": {}}))


def test_a_registered_tool_needs_the_scopes_in_its_script(project: ProjectBuilder, issuer: Issuer) -> None:
    """Only those in a list on the same line counted."""
    project.write("tools/block.sh", BLOCK).chmod(0o755)
    entry = {"name": "registered", "description": "d", "path": "block.sh"}
    project.write("server.d/register.json", json.dumps({"version": 1, "tools": [entry]}))
    with HttpServer(project.root, **trusting(project, issuer)) as server:
        client = server.stateless(token=issuer.token(scope="user"))
        reply = client.request("tools/call", {"name": "registered", "arguments": {}})

    assert reply["error"]["data"]["missingScopes"] == ["admin"]


def test_a_resource_that_is_left_out_because_of_its_scopes_cannot_be_read(
    project: ProjectBuilder, issuer: Issuer
) -> None:
    """It was only missing in the list: each caller could read its file, or run its provider."""
    secrets = {"a": '{"scopes": ["admin"]}', "b": '{"_meta": {"scopes": ["admin"]}}', "c": '{"scopes": ["admin"'}
    for name, description in secrets.items():
        project.write(f"resources/{name}.txt", "SECRET")
        project.write(f"resources/{name}.meta.json", description)
    project.write("resources/d.txt", '<!-- mcp: {"scopes": ["admin"]} -->\nSECRET')
    project.write("resources/e.txt", "SECRET")
    project.write("resources/of-e.meta.json", f'{{"uri": "file://{project.root}/resources/e.txt", "scopes": ["a"]}}')
    project.write("resources/link.txt", "").unlink()
    (project.root / "resources/link.txt").symlink_to("a.txt")
    project.write("resources/any.meta.json", f'{{"uriTemplate": "file://{project.root}/resources/{{name}}"}}')
    project.write("resources/table.meta.json", '{"uriTemplate": "db://table/{name}", "scopes": ["admin"]}')
    project.write("resources/row.meta.json", '{"uri": "db://row", "scopes": ["admin"]}')
    project.write("resources/open.meta.json", '{"uri": "db://table/open"}')
    project.write("resources/open.txt.meta.json", '{"description": "The scope of the work"}')
    project.write("resources/open.txt", "OPEN")
    project.write("providers/db.sh", "#!/bin/sh\necho SECRET\n").chmod(0o755)
    files = f"file://{project.root}/resources"
    hidden = [f"{files}/{name}.txt" for name in [*secrets, "d", "e", "link", "%61"]]
    hidden += [f"file://localhost{project.root}/resources/./a.txt", "file://./resources/a.txt"]
    hidden += ["db://table/a", "DB://table/a", "db://t%61ble/a", "db://row", "db://row?a"]
    with HttpServer(project.root, **trusting(project, issuer)) as server:
        client = server.stateless(token=issuer.token(scope="user"))
        for uri in hidden:
            assert "error" in client.request("resources/read", {"uri": uri}), uri
        assert "OPEN" in json.dumps(client.result("resources/read", {"uri": f"{files}/open.txt"}))
        assert "SECRET" in json.dumps(client.result("resources/read", {"uri": "db://table/open"}))
        (project.root / "resources/a.meta.json").unlink()
        eventually(lambda: "SECRET" in json.dumps(client.request("resources/read", {"uri": hidden[0]})))


def test_the_file_of_a_prompt_needs_the_scopes_of_the_prompt(project: ProjectBuilder, issuer: Issuer) -> None:
    """Below a root, every caller could read the template as a resource."""
    for name, description in {"a": '{"scopes": ["admin"]}', "b": '{"auth": {"scopes": ["admin"]}}', "c": "{}"}.items():
        project.write(f"prompts/{name}.txt", "TEMPLATE")
        project.write(f"prompts/{name}.meta.json", description)
    project.write("prompts/d.meta.json", '{"messages": [{"content": "TEMPLATE"}], "scopes": ["admin"]}')
    with HttpServer(project.root, resources_roots=str(project.root), **trusting(project, issuer)) as server:
        user, admin = (server.stateless(token=issuer.token(scope=scope)) for scope in ("user", "admin"))
        messages = {"uri": f"file://{project.root}/prompts/d.meta.json"}
        a, b, c = ({"uri": f"file://{project.root}/prompts/{name}.txt"} for name in "abc")
        assert user.request("resources/read", a)["error"]["data"]["missingScopes"] == ["admin"]
        assert "TEMPLATE" in json.dumps(admin.result("resources/read", a))
        assert "TEMPLATE" not in json.dumps(user.request("resources/read", b))
        assert "TEMPLATE" in json.dumps(user.result("resources/read", c))
        assert "TEMPLATE" not in json.dumps(user.request("resources/read", messages))


def test_with_the_scope_the_tool_runs(server: HttpServer, issuer: Issuer) -> None:
    client = server.stateless(token=issuer.token(scope="files:read files:write"))

    assert client.call_tool("write")["content"][0]["text"] == "written\n"


def as_somebody_else(client: HttpClient, server: HttpServer, issuer: Issuer) -> HttpClient:
    other = server.client(token=issuer.token(sub="eve"), revision=client.revision)
    other.session_id = client.session_id
    return other


def test_a_session_of_somebody_else_does_not_exist(server: HttpServer, issuer: Issuer) -> None:
    ada = server.session(token=issuer.token(sub="ada"))
    eve = as_somebody_else(ada, server, issuer)

    assert eve.start("tools/list").status == 404
    assert eve.get().status == 404
    assert eve.delete().status == 404
    assert "tools" in ada.result("tools/list")


def test_the_same_caller_keeps_its_session_with_a_new_token(server: HttpServer, issuer: Issuer) -> None:
    ada = server.session(token=issuer.token(sub="ada"))
    later = server.client(token=issuer.token(sub="ada", jti="another"), revision=ada.revision)
    later.session_id = ada.session_id

    assert "tools" in later.result("tools/list")


def test_in_a_session_the_token_of_each_request_counts(server: HttpServer, issuer: Issuer) -> None:
    """A client that was told which scope it lacks comes back with a token that has it, and keeps its session; and one
    whose rights were taken away does not keep them with it."""
    first = server.session(token=issuer.token(scope="files:read"))
    more = server.client(token=issuer.token(scope="files:write", jti="more"), revision=first.revision)
    more.session_id = first.session_id

    assert first.start_tool("write").status == 403
    assert more.call_tool("write")["content"][0]["text"] == "written\n"
    assert json.loads(more.call_tool("who")["content"][0]["text"])["jti"] == "more"
    assert first.start_tool("write").status == 403
    assert "jti" not in json.loads(first.call_tool("who")["content"][0]["text"])


def test_with_the_older_addresses_the_token_of_each_message_counts(project: ProjectBuilder, issuer: Issuer) -> None:
    project.tool("write", "echo written", scopes=["files:write"])
    with HttpServer(project.root, http_legacy_sse=True, **trusting(project, issuer)) as server:
        client = Legacy(server, token=issuer.token(scope="files:read"))
        client.initialize()
        assert client.ask(1, "tools/call", {"name": "write"})["error"]["data"]["missingScopes"] == ["files:write"]
        client.take_token(issuer.token(scope="files:write"))

        assert client.ask(2, "tools/call", {"name": "write"})["result"]["content"][0]["text"] == "written\n"
        client.leave()


def test_a_sealed_state_of_somebody_else_is_refused(server: HttpServer, issuer: Issuer) -> None:
    ada = server.stateless(token=issuer.token(sub="ada"), capabilities=FORM)
    eve = server.stateless(token=issuer.token(sub="eve"), capabilities=FORM)
    asked = ada.call_tool("asker")
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    retry = {"name": "asker", "arguments": {}, "requestState": asked["requestState"], "inputResponses": answers}

    assert eve.error("tools/call", retry)["message"] == "Invalid requestState"
    assert ada.result("tools/call", retry)["content"][0]["text"] == "Ada\n"


def test_a_static_token_and_oauth_can_be_used_side_by_side(project: ProjectBuilder, issuer: Issuer) -> None:
    project.tool("who", WHO)
    static = "a-token-that-nobody-could-ever-guess"
    with HttpServer(project.root, http_token=static, **trusting(project, issuer)) as server:
        assert server.stateless(token=static).start("server/discover").status == 200
        assert server.stateless(token=issuer.token()).start("server/discover").status == 200
        assert server.stateless(token="another-that-is-as-long-as-the-first").start("server/discover").status == 401


def test_a_token_that_is_good_by_the_clock_skew_is_good_for_a_stream_too(
    server: HttpServer, project: ProjectBuilder, issuer: Issuer
) -> None:
    """Requests were served for a minute longer, and each stream that they asked for was ended at once: clients asked
    for it again and again."""
    client = server.stateless(token=issuer.token(exp=int(time.time()) - SKEW_SECS // 2))
    listen = client.listen(toolsListChanged=True)

    project.tool("late", "echo")

    listen.notice("notifications/tools/list_changed")


def test_a_listen_ends_in_good_order_when_its_token_expires(server: HttpServer, issuer: Issuer) -> None:
    def listened(token: str) -> list[Any]:
        return server.stateless(token=token).listen(toolsListChanged=True).rest()

    assert "result" in with_a_short_token(issuer, listened)[-1]


def test_the_stream_of_a_session_ends_when_its_token_expires(server: HttpServer, issuer: Issuer) -> None:
    assert with_a_short_token(issuer, lambda token: server.session(token=token).get().rest()) == []


def with_a_short_token(issuer: Issuer, read_stream: Callable[[str], list[Any]]) -> list[Any]:
    """On a busy machine the token may expire before the stream is open; then the next one lives longer."""
    for secs in (2, 4, 8):
        with suppress(AssertionError):
            return read_stream(issuer.token(exp=int(time.time()) + secs - SKEW_SECS))
    return read_stream(issuer.token(exp=int(time.time()) + 16 - SKEW_SECS))


def test_a_socket_needs_a_url_that_tokens_can_be_for(project: ProjectBuilder, issuer: Issuer) -> None:
    settings = {**trusting(project, issuer), "http_public_url": ""}
    with HttpServer(project.root, address=f"unix:{project.root}/s", **settings) as server:
        assert server.wait() == 1

        assert "set MCPGREEN_HTTP_PUBLIC_URL" in server.stderr


# Writes all that is in its memory into a file, and what others see of its environment.
DUMP = """
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory, open("dump", "wb") as file:
    for places, mode in [line.split()[:2] for line in maps]:
        start, end = [int(place, 16) for place in places.split("-")]
        if mode.startswith("rw"):
            memory.seek(start)
            file.write(memory.read(end - start))
    file.write(open("/proc/self/environ", "rb").read())
print("warm" if b"sdk/warm" in open("/proc/self/cmdline", "rb").read() else "fresh", end="")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="scripts are forked on Linux only")
def test_nothing_of_one_caller_is_in_the_memory_of_a_script_of_another(project: ProjectBuilder, issuer: Issuer) -> None:
    """Python scripts are forked from a process that the call of another caller has started."""
    project.forked_tool("dump", DUMP)
    names = ["first", "second", "third"]
    with HttpServer(project.root, warm_python="true", **trusting(project, issuer)) as server:
        for name in names:
            client = server.stateless(token=issuer.token(sub=f"sub-of-{name}", team=f"team-of-{name}"))

            def call(client: HttpClient = client, name: str = name) -> str:
                arguments, meta = (
                    {"word": f"word-of-{name}"},
                    {"x/note": f"note-of-{name}", "progressToken": f"token-of-{name}"},
                )
                text: str = client.call_tool("dump", arguments, meta=meta)["content"][0]["text"]
                return text

            assert call() == "fresh" if name == "first" else eventually(lambda: call() == "warm")
            found = set(
                re.findall(rb"(sub|team|word|note|token)-of-(first|second|third)", (project.root / "dump").read_bytes())
            )
            assert found == {(part, name.encode()) for part in (b"sub", b"team", b"word", b"note", b"token")}
