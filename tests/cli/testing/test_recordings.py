"""`record` and `replay`: what a recording has, what it hides, and how it plays the server."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.recording.files import fitted
from tests.cli.test_commands import mcpgreen
from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK
from tests.support.waiting import eventually
from tests.support.wire import Wire, command_of_tests
from tests.tasks.clients import WITH_TASKS

Json = dict[str, Any]
ASKER = f"""{ASK}
note('asked')
print(ask({{'who': form('Who?', name=TEXT)}})['who']['result']['content']['name'])
"""
SECRET = {"type": "object", "properties": {"phrase": {"type": "string", "format": "password"}, "q": {"type": "string"}}}
TELL = 'printf %s "$MCP_TOOL_ARGS_JSON"; echo " $SERVICE_TOKEN" >&2'
CAPABLE = {"elicitation": {}}
META = {"io.modelcontextprotocol/clientCapabilities": CAPABLE}
HEAD = '{"recording": 1, "root": "/", "rules": {"members": [], "texts": [["%s", ""]]}}'
ANSWER = {"action": "accept", "content": {"name": "Ada"}}


def lines_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recording_of(project: ProjectBuilder, path: Path, env: dict[str, str] | None = None) -> Wire:
    return Wire(project.root, env={"MCPGREEN_RECORD": str(path), **(env or {})})


def test_a_recording_has_everything_but_secrets(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("tell", TELL, inputSchema=SECRET, env=["SERVICE_TOKEN"])
    project.tool("login", """echo '{"password": "made-now"}'""")
    session = tmp_path / "session.jsonl"
    env = {"SERVICE_TOKEN": "of-the-environment", "MCPGREEN_RESULT_META": "always"}
    with recording_of(project, session, env) as wire:
        # The tool is not known yet, and its schema alone says what is secret.
        wire.start_request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}, id="i")
        wire.notify("notifications/initialized")
        arguments = {"phrase": "open-sesame", "q": "seen", "apiKey": "a-key"}
        wire.response(wire.start_request("tools/call", {"name": "tell", "arguments": arguments}))
        wire.call_tool("login")
        assert wire.stop() == 0

    text = session.read_text(encoding="utf-8")
    assert not [each for each in ("open-sesame", "a-key", "of-the-environment", "made-now") if each in text]
    head, *lines = lines_of(session)
    assert (head["recording"], head["root"], head["server"]["name"]) == (1, str(project.root), "test-project")
    calls = [each["message"] for each in lines if each["message"].get("method") == "tools/call"]
    assert calls[0]["params"]["arguments"] == {"phrase": "[redacted]", "q": "seen", "apiKey": "[redacted]"}
    assert [each["from"] for each in lines][:2] == ["client", "server"]
    assert [each["secs"] for each in lines] == sorted(each["secs"] for each in lines)
    assert stat.S_IMODE(session.stat().st_mode) == 0o600


def test_what_was_secret_once_is_hidden_in_all_that_follows(project: ProjectBuilder, tmp_path: Path) -> None:
    """In questions, log messages and the results of tasks, which do not name the call that they are about, and in what
    follows an answer of the user."""
    project.python_tool(
        "asker",
        f"""{ASK}
phrase = json.loads(os.environ["MCP_TOOL_ARGS_JSON"])["phrase"]
control({{"method": "notifications/message", "params": {{"level": "info", "data": "log " + phrase}}}})
answer = ask({{'who': form('Who is ' + phrase + '?', name=TEXT, pin=TEXT)}})['who']['result']['content']
print(json.dumps({{"told": {{phrase: "was " + answer["pin"]}}}}))
""",
        inputSchema=SECRET,
    )
    project.tool("later", "printf '%s' \"$MCP_TOOL_ARGS_JSON\"", inputSchema=SECRET, outputSchema=SECRET, task="auto")
    session = tmp_path / "session.jsonl"
    with recording_of(project, session) as wire:
        wire.handshake(capabilities=CAPABLE)
        request = wire.start_request("tools/call", {"name": "asker", "arguments": {"phrase": "open-sesame"}})
        answer = {"action": "accept", "content": {"name": "Ada", "pin": "pin-of-ada"}}
        wire.send({"jsonrpc": "2.0", "id": wire.notice("elicitation/create")["id"], "result": answer})
        assert "pin-of-ada" in wire.response(request)["result"]["content"][0]["text"]
        params = {"name": "later", "arguments": {"phrase": "close-sesame"}, "task": {}}
        task = wire.result("tools/call", params)["task"]
        wire.result("tasks/result", {"taskId": task["taskId"]})
        modern = {"name": "asker", "arguments": {"phrase": "shut-sesame"}}
        asked = wire.modern("tools/call", modern, meta=META)["result"]
        answers = dict.fromkeys(asked["inputRequests"], answer)
        retry = {**modern, "inputResponses": answers, "requestState": asked["requestState"]}
        wire.modern("tools/call", retry, meta=META)
        assert wire.stop() == 0

    text = session.read_text(encoding="utf-8")
    assert "Who is [redacted]?" in text and "log [redacted]" in text and asked["requestState"] not in text
    assert '"properties":{"name":{"type":"string"},"pin":{"type":"string"}}' in text
    assert not [each for each in ("open-sesame", "pin-of-ada", "close-sesame", "shut-sesame") if each in text]


def test_a_replay_does_not_mind_what_is_different_each_time(project: ProjectBuilder, tmp_path: Path) -> None:
    """Secrets, times, processes, pages and states, in a project that has moved and a file whose rules were edited."""
    project.tool(
        "log", 'source "$MCP_SDK/tool-sdk.sh"; mcp_log error log "\\"seen $SERVICE_TOKEN\\""', env=["SERVICE_TOKEN"]
    )
    project.tool(
        "tell", f'{TELL}; date -Is; echo "pid $$"; echo "$PWD"; echo "port $RANDOM"; mktemp -u', inputSchema=SECRET
    )
    project.tool("second", "head -c 100000 /dev/zero | tr '\\0' x; echo $RANDOM")
    session = tmp_path / "session.jsonl"
    with recording_of(project, session, {"MCPGREEN_PAGE_SIZE": "1", "SERVICE_TOKEN": "of-the-environment"}) as wire:
        wire.handshake()
        cursor = wire.result("tools/list")["nextCursor"]
        wire.result("tools/list", {"cursor": cursor})
        wire.call_tool("tell", {"phrase": "open-sesame"})
        wire.call_tool("second")
        wire.call_tool("log")
        wire.start_request("tools/call", {"name": "tell", "arguments": {"phrase": "cancelled"}}, id="gone")
        wire.notify("notifications/cancelled", {"requestId": "gone"})
        assert wire.stop() == 0
    moved = tmp_path / "elsewhere"
    project.root.rename(moved)
    replay = ("replay", str(session), "--project-root", str(moved))
    env = {"MCPGREEN_LAUNCHER": str(command_of_tests()), "MCPGREEN_PAGE_SIZE": "1", "SERVICE_TOKEN": "of-today"}

    done = mcpgreen(*replay, env=env)
    assert (done.returncode, done.stdout.count("differs ")) == (1, 1), done.stdout
    assert "+port" in done.stdout
    head, *lines = session.read_text(encoding="utf-8").splitlines()
    rules = json.loads(head)
    rules["rules"]["texts"].append([r"port \d+", "port"])
    session.write_text("\n".join([json.dumps(rules), *lines, '{"torn": ']), encoding="utf-8")
    done = mcpgreen(*replay, env=env)
    assert (done.returncode, done.stdout) == (0, "6 answers, 0 differences\n"), done.stdout


def test_a_replay_looks_at_a_task_until_it_has_ended(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("slow", 'until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.02; done; echo done', task="always")
    session = tmp_path / "session.jsonl"
    capable = {"io.modelcontextprotocol/clientCapabilities": WITH_TASKS}
    with recording_of(project, session) as wire:
        wire.handshake()
        older = wire.result("tools/call", {"name": "slow", "task": {}})["task"]
        modern = wire.modern("tools/call", {"name": "slow"}, meta=capable)["result"]
        assert wire.result("tasks/get", {"taskId": older["taskId"]})["status"] == "working"
        project.write("go", "")
        eventually(lambda: wire.result("tasks/get", {"taskId": older["taskId"]})["status"] == "completed")
        wire.result("tasks/result", {"taskId": older["taskId"]})
        look = lambda: wire.modern("tasks/get", {"taskId": modern["taskId"]}, meta=capable)["result"]  # noqa: E731
        eventually(lambda: look()["status"] == "completed")
        assert wire.stop() == 0

    assert older["taskId"] in session.read_text(encoding="utf-8")
    done = mcpgreen("replay", str(session), cwd=project.root, env={"MCPGREEN_LAUNCHER": str(command_of_tests())})
    assert (done.returncode, done.stdout) == (0, "6 answers, 0 differences\n"), done.stdout
    project.tool("slow", "sleep 0.3; echo do", task="always")
    done = mcpgreen("replay", str(session), cwd=project.root, env={"MCPGREEN_LAUNCHER": str(command_of_tests())})
    assert (done.returncode, done.stdout.count("differs tasks/")) == (1, 2), done.stdout


def test_a_recording_answers_a_client_as_the_server_did(project: ProjectBuilder, tmp_path: Path) -> None:
    """By method and params, not by order; with questions and progress, and the client's own ids and tokens."""
    project.python_tool("asker", ASKER)
    project.tool("count", 'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 50 half; echo x >> n; grep -c x n')
    session = tmp_path / "session.jsonl"
    with recording_of(project, session) as wire:
        wire.handshake(capabilities=CAPABLE)
        request = wire.start_request("tools/call", {"name": "asker"})
        wire.send({"jsonrpc": "2.0", "id": wire.notice("elicitation/create")["id"], "result": ANSWER})
        wire.response(request)
        for number in (1, 2):
            assert wire.call_tool("count", _meta={"progressToken": 7})["content"][0]["text"] == f"{number}\n"
        assert wire.stop() == 0

    with Wire(None, arguments=("replay", str(session), "--serve")) as player:
        player.handshake(capabilities=CAPABLE)
        seen = [player.call_tool("count", _meta={"progressToken": "mine"})["content"][0]["text"] for _ in range(3)]
        assert seen == ["1\n", "2\n", "2\n"]
        assert player.notice("notifications/progress")["params"]["progressToken"] == "mine"
        request = player.start_request("tools/call", {"name": "asker"}, id="own")
        question = player.notice("elicitation/create")
        assert question["params"]["message"] == "Who?"
        player.send({"jsonrpc": "2.0", "id": question["id"], "result": ANSWER})
        assert player.response(request)["result"]["content"][0]["text"] == "Ada\n"
        assert "no answer to tools/call" in player.error("tools/call", {"name": "other"})["message"]
        assert player.stop() == 0


def test_recording_takes_the_place_of_serving_and_overwrites_nothing(project: ProjectBuilder, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.write_text("mine", encoding="utf-8")
    words = ("record", str(session), "--", "serve", "--project-root", str(project.root))
    with Wire(None, arguments=words, env={"MCPGREEN_LAUNCHER": str(command_of_tests())}) as wire:
        wire.handshake()
        assert wire.stop() == 0

    assert session.read_text(encoding="utf-8") == "mine"
    assert len(lines_of(tmp_path / "session-2.jsonl")) == 4
    refused = mcpgreen("record", str(session), "--", "serve", "--http")
    assert (refused.returncode, "over stdio" in refused.stderr) == (2, True)


def test_a_server_that_cannot_record_serves(project: ProjectBuilder) -> None:
    with recording_of(project, Path("/nowhere/session.jsonl")) as wire:
        wire.handshake()
        eventually(lambda: "nothing more is recorded" in wire.stderr)


def test_what_is_large_or_odd_is_only_mentioned(project: ProjectBuilder, tmp_path: Path) -> None:
    """What a client sends must be searched for secrets, so the recording ends if it is too large for that."""
    from tests.support.constants import variables_of

    session = tmp_path / "session.jsonl"
    project.tool("large", "head -c 1000 /dev/zero | tr '\\0' x")
    with recording_of(project, session, variables_of({"MAX_FRAME_BYTES": 800})) as wire:
        wire.handshake()
        wire.call_tool("large")
        odd: Json = {"jsonrpc": "2.0", "id": [1], "method": "ping"}
        wire.send(odd, {**odd, "id": 9, "params": []})
        wire.request("ping", {"_meta": {"text": "x" * 800}})
        wire.request("ping")
        eventually(lambda: "nothing more is recorded" in wire.stderr)
        assert wire.stop() == 0
    _, *lines = lines_of(session)
    assert [each["from"] for each in lines if each["message"] is None] == ["server", "client", "client"]
    assert lines[-1]["message"]["id"] == 9
    done = mcpgreen("replay", str(session), "--project-root", str(project.root))
    assert (done.returncode, done.stdout.count("it was not recorded, so it is not sent")) == (1, 2), done.stdout
    with Wire(None, arguments=("replay", str(session), "--serve")) as player:
        player.send(odd, {**odd, "id": 1, "params": 1})
        player.handshake()
        assert player.stop() == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "no",
        '{"recording": 2}',
        "[]",
        HEAD % "(",
        f"{HEAD % ''}\nno",
        f"{HEAD % ''}\n[]",
        f"{HEAD % ''}\n{{}}",
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(f"{text}\n", encoding="utf-8")
    done = mcpgreen("replay", str(tmp_path / "file"), "--serve")
    assert (done.returncode, "mcpgreen: error: " in done.stderr, "Traceback" in done.stderr) == (1, True, False)


def test_what_a_recording_hides_fits_any_value() -> None:
    wanted = {"token": "[redacted]", "text": ["key [redacted] used"]}
    assert fitted(wanted, {"token": {"a": 1}, "text": ["key x\ny used"]}) == wanted
    assert fitted(wanted, found := {"token": "", "text": ["no key x used", 1]}) == {**found, "token": "[redacted]"}


def test_nothing_is_recorded_over_http(project: ProjectBuilder, serve: Serve, tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    server = serve(record=str(session))
    eventually(lambda: "nothing is recorded: " in server.stderr)
    assert not session.exists()
