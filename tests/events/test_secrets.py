"""What is secret is in nothing that shows what a server does: viewers, the log, traces, recordings, spans."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.events.test_otel import Collector
from tests.support.client import Client, Speak
from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL, ASK, FORM, Talk, accept
from tests.support.viewer import Viewer
from tests.support.waiting import eventually
from tests.support.wire import MODERN, clean_environment, text_of
from tests.tasks.clients import ended

Json = dict[str, Any]

PLANTED = "hunter2-"  # all that is secret begins like this
BEARER = f"{PLANTED}bearer-{'x' * 32}"
PASSWORD: Json = {"type": "string", "format": "password"}
WRITTEN: Json = {"type": "string", "writeOnly": True}
TEXT: Json = {"type": "string"}
TAKES = {"type": "object", "properties": {"phrase": PASSWORD, "word": WRITTEN, "note": TEXT}}
GIVES = {"type": "object", "properties": {"made": PASSWORD, "plain": TEXT}}
TELLS = 'echo "$MCP_TOOL_ARGS_JSON $MY_API_KEY" >&2; printf "%s" "$MCP_TOOL_ARGS_JSON"'
# It repeats what it was told in all ways: as progress, in the client's log, in another question, on stderr.
ASKER = f"""{ASK}
SECRET = {{"type": "string", "format": "password"}}
answer = ask({{'who': form('Who?', code=SECRET, name=TEXT)}})['who']['result']['content']
code = answer["code"]
control({{"progress": 1, "message": "progress " + code}})
control({{"method": "notifications/message", "params": {{"level": "info", "data": "log " + code}}}})
again = ask({{'then': form('Was it ' + code + '?', mood=TEXT)}})['then']['result']['content']
print("stderr", code, file=sys.stderr)
print("told", code, answer["name"], again["mood"])
sys.exit(1 if answer["name"] == "failing" else 0)
"""
TASK = """
sleep 0.3
echo "working with $MCP_TOOL_ARGS_JSON" >&2
printf '{"made": "hunter2-of-a-result", "plain": "harmless-result"}'
"""


def plant(project: ProjectBuilder) -> None:
    project.tool("tells", TELLS, inputSchema=TAKES, env=["MY_API_KEY"])
    project.python_tool("asker", ASKER)
    project.tool("job", TASK, inputSchema=TAKES, outputSchema=GIVES, task="auto")


def arguments_of(place: str) -> Json:
    """Secrets in each way, and something harmless."""
    return {
        "password": f"{PLANTED}{place}-by-name",
        "phrase": f"{PLANTED}{place}-by-format",
        "word": f"{PLANTED}{place}-written-only",
        "note": f"harmless-{place}",
    }


def call_with_secrets(client: Any) -> None:
    meta = {"auth": {"token": f"{PLANTED}meta"}, "io.example/where": "harmless-meta", "progressToken": "p"}
    client.call_tool("tells", arguments_of("arguments"), meta=meta)
    task = client.result("tools/call", {"name": "job", "arguments": arguments_of("task"), "task": {}})["task"]
    ended(client, task)
    assert f"{PLANTED}of-a-result" in json.dumps(client.result("tasks/result", {"taskId": task["taskId"]}))


def answer_with_secrets(client: Client, name: str) -> None:
    """In the handshake era."""
    id = client.start_tool("asker", meta={"progressToken": "q"})
    client.answer(client.asked("elicitation/create"), accept(code=f"{PLANTED}{name}", name=name))
    client.answer(client.asked("elicitation/create"), accept(mood="harmless-mood"))
    client.wire.response(id)


def come_back_with_secrets(client: Client) -> None:
    """In the stateless era."""
    talk = Talk(client, name="asker").begun()
    talk.answer(accept(code=f"{PLANTED}stateless", name="harmless-stateless"))
    assert f"{PLANTED}stateless" in text_of(talk.answer(accept(mood="harmless-mood")))


def require_no_secrets(places: dict[str, str], harmless: list[str]) -> None:
    assert {place: _around(text) for place, text in places.items() if PLANTED in text} == {}
    assert [(place, each) for place, text in places.items() for each in harmless if each not in text] == []


def _around(text: str) -> list[str]:
    """What is around each planted secret, for the report of a test that fails."""
    return [text[max(0, at - 150) : at + 50] for at in range(len(text)) if text.startswith(PLANTED, at)][:20]


@contextlib.contextmanager
def tracing(pid: int, path: Path) -> Iterator[None]:
    """Run `mcpgreen trace`, which ends with the server: within this block."""
    command = [sys.executable, "-m", "mcpgreen", "trace", str(path), str(pid)]
    process = subprocess.Popen(command, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        eventually(path.exists)
        yield
        process.wait(20)
    finally:
        process.kill()


@contextlib.contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.shutdown()
        collector.server_close()


def test_no_planted_secret_comes_out_over_stdio(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    plant(project)
    session, trace = tmp_path / "session.jsonl", tmp_path / "trace.jsonl"
    with collecting() as collector:
        env = {
            "MY_API_KEY": f"{PLANTED}environment",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        client = speak("2025-11-25", capabilities=FORM, stderr_level="debug", record=str(session), otel=True, env=env)
        viewer = Viewer(client.wire.pid)
        with tracing(client.wire.pid, trace):
            # The tools are not known yet: their schemas alone say what is secret.
            client.call_tool("tells", arguments_of("first"))
            eventually(lambda: client.call_tool("tells") and "tools/call tells" in collector.spans())
            call_with_secrets(client)
            answer_with_secrets(client, "harmless-name")
            answer_with_secrets(client, "failing")
            come_back_with_secrets(Client(client.wire, MODERN, capabilities=ALL))
            later = Viewer(client.wire.pid)  # gets what is remembered
            for each in (viewer, later):
                each.get("ended", outcome="failed", name="asker")
            assert client.wire.stop() == 0
        spans = "".join(body.decode("latin-1") for _, body in collector.bodies)

    shown = {"viewer": json.dumps(viewer.events), "log": client.wire.stderr}
    shown |= {"trace": trace.read_text(encoding="utf-8"), "recording": session.read_text(encoding="utf-8")}
    harmless = ["harmless-arguments", "harmless-meta", "harmless-task", "harmless-result", "harmless-name"]
    require_no_secrets(shown, [*harmless, "harmless-mood", "harmless-stateless", "failing"])
    require_no_secrets({"spans": spans, "later viewer": json.dumps(later.events)}, ["tells", "asker"])


def test_no_planted_secret_of_a_batch_comes_out(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    plant(project)
    session = tmp_path / "session.jsonl"
    client = speak("2025-03-26", stderr_level="debug", record=str(session))
    viewer = Viewer(client.wire.pid)
    for place in ("first", "second"):  # at first, the tools are not known yet
        params = {"name": "tells", "arguments": arguments_of(place), "_meta": {"token": f"{PLANTED}{place}-meta"}}
        call = {"jsonrpc": "2.0", "id": place, "method": "tools/call", "params": params}
        client.wire.send([call, {"jsonrpc": "2.0", "id": f"{place}-ping", "method": "ping"}])
        client.wire.receive(lambda message: "batch" in message)
    repeated = f"{PLANTED}second-written-only"
    client.wire.request("no/such", {"text": f"{repeated} and harmless-repeat"})
    eventually(lambda: "harmless-repeat" in json.dumps(viewer.events))
    assert client.wire.stop() == 0

    shown = {"viewer": json.dumps(viewer.events), "log": client.wire.stderr}
    shown["recording"] = session.read_text(encoding="utf-8")
    require_no_secrets(shown, ["harmless-second", "harmless-repeat"])


def test_no_planted_secret_comes_out_over_http(project: ProjectBuilder, serve: Serve) -> None:
    plant(project)
    server = serve(stderr_level="debug", http_token=BEARER, env={"MY_API_KEY": f"{PLANTED}environment"})
    assert server.url
    viewer = Viewer(server.process.pid)
    call_with_secrets(server.session(capabilities=FORM, token=BEARER))
    talk = Talk(server.stateless(capabilities=ALL, token=BEARER), name="asker")
    talk.begin()
    talk.answer(accept(code=f"{PLANTED}stateless", name="harmless-stateless"))
    talk.answer(accept(mood="harmless-mood"))
    assert server.client(token=f"{PLANTED}wrong").start("ping").status == 401
    viewer.get("ended", name="asker", outcome="ok")
    server.stop()

    shown = {"viewer": json.dumps(viewer.events), "log": server.stderr}
    harmless = ["harmless-arguments", "harmless-meta", "harmless-task", "harmless-result", "harmless-stateless"]
    require_no_secrets(shown, [*harmless, "harmless-mood"])


def test_what_came_while_nobody_looked_is_secret_for_later_viewers(project: ProjectBuilder, speak: Speak) -> None:
    plant(project)
    client = speak("2025-11-25", capabilities=FORM)
    task = client.result("tools/call", {"name": "job", "arguments": arguments_of("task"), "task": {}})["task"]
    ended(client, task)
    id = client.start_tool("asker")
    asked = client.asked("elicitation/create")
    viewer = Viewer(client.wire.pid)  # only now
    client.answer(asked, accept(code=f"{PLANTED}late", name="failing"))
    client.answer(client.asked("elicitation/create"), accept(mood="harmless-mood"))
    client.wire.response(id)
    client.result("tasks/result", {"taskId": task["taskId"]})
    viewer.get("ended", outcome="failed", name="asker")
    viewer.get("frame", method="tasks/result")
    client.result("ping")
    viewer.get("frame", method="ping")
    assert client.wire.stop() == 0

    require_no_secrets({"viewer": json.dumps(viewer.events)}, ["harmless-mood", "failing", "harmless-result"])
    require_no_secrets({"log": client.wire.stderr}, ["asker failed"])


def test_what_cannot_be_searched_is_not_shown(speak: Speak) -> None:
    client = speak("2025-03-26", stderr_level="debug")
    many = [{"text": "harmless-text"}] * 6000
    client.wire.request("no/such", {"many": many, "password": f"{PLANTED}behind"})
    client.wire.send([1] * 6000 + [{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"many": many}}])
    client.wire.request("no/such", {"text": "harmless-end"})
    assert client.wire.stop() == 0

    require_no_secrets({"log": client.wire.stderr}, ["harmless-end"])
    assert "harmless-text" not in client.wire.stderr
