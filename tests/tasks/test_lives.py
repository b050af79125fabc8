"""What becomes of tasks when clients, sessions and servers end, and who may see them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import gevent
import pytest

from mcpgreen.features.call import Call
from mcpgreen.features.services import Services
from mcpgreen.features.tasks.tasks import Tasks
from mcpgreen.links.session import WaitingCalls
from mcpgreen.project.task_place import DATABASE, directory_of
from mcpgreen.tasks import life
from mcpgreen.tasks.life import Task
from tests.support.client import Client
from tests.support.http import Serve
from tests.support.issuer import RESOURCE, Issuer
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, accept
from tests.support.waiting import eventually
from tests.support.wire import Json, Start, text_of
from tests.tasks.clients import ASKABLE, GO, LATEST_HANDSHAKE, MODERN, WITH_TASKS, begin, ended, get, look_until

RESTARTED = "The server was restarted"


@pytest.mark.requirement("T-recover")
def test_after_a_crash_a_task_has_failed_or_is_run_again(project: ProjectBuilder, serve: Serve) -> None:
    said = 'echo "$MCP_TASK_ATTEMPT" >> "$MCPGREEN_PROJECT_ROOT/$MCP_TOOL_NAME"'
    for name, idempotent in (("once", False), ("twice", True)):
        script = f'source "$MCP_SDK/tool-sdk.sh"; {said}; {GO}; printf %s "$(mcp_args_get .n)"'
        project.tool(name, script, task="always", idempotent=idempotent)
    first = serve()
    client = first.stateless(capabilities=WITH_TASKS)
    tasks = [begin(client, name, {"n": 7}) for name in ("once", "twice")]
    eventually(lambda: all((project.root / name).exists() for name in ("once", "twice")))
    first.process.send_signal(signal.SIGKILL)
    first.wait()
    client = serve().stateless(capabilities=WITH_TASKS)
    project.write("go", "")
    once, twice = (ended(client, task) for task in tasks)

    assert (once["status"], once["error"]) == ("failed", {"code": -32603, "message": RESTARTED})
    assert text_of(twice["result"]) == "7"
    assert (project.read("once"), project.read("twice")) == ("1\n", "1\n2\n")


@pytest.mark.requirement("T-recover", "T-eof")
def test_a_task_that_was_taken_over_does_not_end_with_the_client_of_that_server(
    project: ProjectBuilder, serve: Serve, start: Start
) -> None:
    """It belongs to somebody else: it was cancelled when a client left that knew nothing of it."""
    said = 'echo "$MCP_TASK_ATTEMPT" >> "$MCPGREEN_PROJECT_ROOT/started"'
    project.tool("slow", f"{said}; {GO}; printf done", task="always", idempotent=True)
    first = serve()
    task = begin(first.stateless(capabilities=WITH_TASKS), "slow")
    eventually(lambda: (project.root / "started").exists() and "1" in project.read("started"))
    first.process.kill()
    first.wait()
    taking_over = start()
    eventually(lambda: "2" in project.read("started"))
    assert taking_over.stop() == 0
    project.write("go", "")

    assert text_of(ended(serve().stateless(capabilities=WITH_TASKS), task)["result"]) == "done"


@pytest.mark.requirement("T-eof")
@pytest.mark.parametrize("ending", ["eof", "signal"])
def test_the_end_of_a_server_ends_its_tasks(project: ProjectBuilder, start: Start, ending: str) -> None:
    project.tool("slow", 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; sleep 1000', task="always")
    client = Client(start(), MODERN, capabilities=WITH_TASKS)
    task = begin(client, "slow")
    eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    began_at = time.monotonic()
    if ending == "eof":
        client.wire.close_stdin()
    else:
        client.wire.process.terminate()
    assert client.wire.wait() == 0
    seen = get(Client(start(), MODERN, capabilities=WITH_TASKS), task)

    assert seen["status"] == ("cancelled" if ending == "eof" else "failed")
    assert ending == "eof" or seen["error"] == {"code": -32603, "message": RESTARTED}
    assert time.monotonic() - began_at < 8
    assert not Path(f"/proc/{int(project.read('pid'))}").exists()


@pytest.mark.requirement("T-sessions", "T-owners")
def test_a_session_has_tasks_of_its_own_which_end_with_it(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("slow", 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; sleep 1000', task="always")
    project.tool("lasting", f'{GO}; echo x > "$MCPGREEN_PROJECT_ROOT/lasted"', task="always", taskSurvivesClient=True)
    server = serve()
    owner, other = server.session(), server.session()
    task, lasting = begin(owner, "slow"), begin(owner, "lasting")
    eventually(lambda: (project.root / "pid").exists() and project.read("pid"))
    foreign = other.request("tasks/get", {"taskId": task["taskId"]}, id=1)
    unknown = other.request("tasks/get", {"taskId": "0" * 32}, id=1)
    listed = other.result("tasks/list")["tasks"]
    owner.delete()
    eventually(lambda: not Path(f"/proc/{int(project.read('pid'))}").exists())
    project.write("go", "")

    assert foreign == unknown and listed == []
    assert "taskId" in lasting
    eventually(lambda: (project.root / "lasted").exists())


@pytest.mark.requirement("T-owners")
def test_a_task_belongs_to_the_subject_of_its_token(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("slow", GO, task="always")
    issuer = Issuer()
    try:
        keys = project.write("keys.json", json.dumps({"keys": issuer.keys}))
        settings = {"http_oauth_issuer": issuer.name, "http_oauth_jwks_url": str(keys), "http_public_url": RESOURCE}
        server = serve(**settings)
        ann, again, bob = (
            server.stateless(capabilities=WITH_TASKS, token=issuer.token(sub=name)) for name in ("ann", "ann", "bob")
        )
        task = begin(ann, "slow")
        params = {"taskId": task["taskId"]}

        assert get(again, task)["status"] == "working"
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            foreign = bob.request(method, {**params, "inputResponses": {}}, id=1)
            assert foreign == bob.request(method, {"taskId": "0" * 32, "inputResponses": {}}, id=1)
        assert get(ann, task)["status"] == "working"
    finally:
        issuer.stop()


@pytest.mark.requirement("T-replicas")
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_servers_serve_the_same_task(project: ProjectBuilder, serve: Serve, order: str) -> None:
    """Its questions are answered by both, its client is gone meanwhile, and one cancels what the other runs."""
    body = f"{ASK}\nplaces = [post({{key: form(key, name=TEXT)}}) for key in 'ab']"
    project.python_tool("asker", f"{body}\nprint(json.dumps([read(place) for place in places]))", task="always")
    project.tool("slow", "sleep 1000", task="always")
    first, second = (server.stateless(capabilities=ASKABLE) for server in (serve(), serve()))
    task, slow = begin(first, "asker"), begin(first, "slow")
    look_until(second, task, lambda found: len(found.get("inputRequests", ())) == 2)
    first.close()
    for client, key in zip((second, first), order, strict=True):
        answers = {key: accept(name=key.upper())}
        client.result("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
    second.result("tasks/cancel", {"taskId": slow["taskId"]})

    result = text_of(ended(second, task)["result"])
    assert '"A"' in result and '"B"' in result
    assert ended(first, slow)["status"] == "cancelled"


@pytest.mark.requirement("T-unusable")
def test_without_a_usable_store_calls_run_as_before(project: ProjectBuilder, start: Start, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    for way in ("auto", "always", "required"):
        project.tool(way, "sleep 0.2; printf plain", task=way, taskAfterSecs=0.01)
    client = Client(start(env={"XDG_STATE_HOME": str(state)}), MODERN, capabilities=WITH_TASKS)

    assert [text_of(client.call_tool(way)) for way in ("auto", "always")] == ["plain", "plain"]
    assert client.error("tools/call", {"name": "required"})["code"] == -32603
    assert client.error("tasks/get", {"taskId": "0" * 32})["code"] == -32602
    assert list(state.iterdir()) == []
    assert "tasks cannot be stored" in client.wire.stderr


@pytest.mark.requirement("T-expire")
def test_a_task_is_forgotten_after_its_time(project: ProjectBuilder, serve: Serve) -> None:
    project.tool("quick", "", task="always", taskKeepSecs=0.4)
    client = serve(task_keep_secs=1).stateless(capabilities=WITH_TASKS)
    task = begin(client, "quick")
    assert 400 <= ended(client, task)["ttlMs"] <= 2000
    eventually(lambda: "error" in client.request("tasks/get", {"taskId": task["taskId"]}) or time.sleep(0.1))


@pytest.mark.parametrize("fields", [{"task": "always"}, {"task": "auto", "taskAfterSecs": 0.1}])
def test_the_end_of_stderr_is_kept(project: ProjectBuilder, serve: Serve, fields: Json) -> None:
    project.tool("noisy", "for i in $(seq 20000); do echo line $i; done >&2; sleep 0.3", **fields)
    client = serve().stateless(capabilities=WITH_TASKS)
    ended(client, begin(client, "noisy"))
    database = Path(directory_of(str(project.root), os.environ)) / DATABASE
    (kept,) = sqlite3.connect(database).execute("SELECT stderr_end FROM tasks").fetchone()

    assert 60_000 < len(kept) <= 65_536 and kept.endswith(b"line 20000\n")


def test_secrets_are_not_on_disk(project: ProjectBuilder, serve: Serve) -> None:
    secret, fields = "hunter2hunter2", {"code": {"type": "string", "format": "password"}, "pepper": {"writeOnly": True}}
    schema = {"type": "object", "properties": fields}
    script = f"echo token=hunter2hunter2 >&2; {GO}"
    project.tool("slow", script, task="always", idempotent=True, inputSchema=schema)
    server = serve()
    client = server.stateless(capabilities=WITH_TASKS)
    arguments = {"api_key": secret, "code": f"{secret}1", "pepper": 7654321, "url": f"https://a:{secret}@b"}
    task = begin(client, "slow", {**arguments, "text": "visible"})
    project.write("go", "")
    ended(client, task)
    server.stop()
    kept = [path.read_bytes() for path in Path(directory_of(str(project.root), os.environ)).iterdir() if path.is_file()]

    assert b"visible" in b"".join(kept)
    assert b"hunter2hunter2" not in b"".join(kept) and b"7654321" not in b"".join(kept)


def test_nothing_of_tasks_is_loaded_before_the_first_task(project: ProjectBuilder, start: Start) -> None:
    project.tool("quick", "printf plain")
    project.tool("always", "", task="always")
    wire = start(env={"PYTHONVERBOSE": "1"}, is_fresh=True)
    client = Client(wire, MODERN, capabilities=WITH_TASKS)
    assert text_of(client.call_tool("quick")) == "plain"
    before = wire.stderr
    begin(client, "always")

    assert "mcpgreen.features.tools" in before
    assert not [name for name in ("mcpgreen.tasks", "mcpgreen.features.tasks", "sqlite3") if name in before]
    eventually(lambda: "mcpgreen.features.tasks" in wire.stderr)


@pytest.mark.parametrize("revision", [MODERN, LATEST_HANDSHAKE])
def test_descriptions_say_how_calls_become_tasks(project: ProjectBuilder, start: Start, revision: str) -> None:
    """In a comment, in YAML, beside the script, and in Python."""
    project.tool("comment", '#!/bin/bash\n# mcp: {"task": "required"}\n')
    project.tool("yaml", "#!/bin/bash\n# mcp:\n#   task: required\n#   taskKeepSecs: 5\n")
    project.tool("beside", "", task="required")
    project.forked_tool(
        "python",
        "import mcp_tool\n@mcp_tool.tool(task='required', rerun=True, task_keep_secs=5)\ndef python() -> None: 'x'\n",
    )
    client = Client(start(), revision, capabilities=WITH_TASKS)
    if revision == MODERN:
        kept = {name: ended(client, begin(client, name))["ttlMs"] for name in ("comment", "yaml", "beside", "python")}
        assert kept["yaml"] < 20_000 and kept["python"] < 20_000 and kept["beside"] > 3_000_000
    else:
        tools: dict[str, Json] = client.tools()
        assert {tool["execution"]["taskSupport"] for tool in tools.values()} == {"required"}


def tasks_in(place: Path, **services: object) -> Tasks:
    """The tasks of a server that does nothing else."""
    project, environ = SimpleNamespace(root=str(place)), {"XDG_STATE_HOME": str(place / "state")}
    settings = SimpleNamespace(max_tasks_per_principal=9, max_tasks=9, state_key="", task_keep_secs=60.0, fleet_url="")
    waiting = WaitingCalls(max_calls=9, max_bytes=9)
    given = SimpleNamespace(settings=settings, project=project, environ=environ, waiting=waiting, keeper_environ=None)
    given.__dict__.update(services)
    return Tasks(given)  # type: ignore[arg-type]


def test_a_server_that_stops_takes_over_no_task(tmp_path: Path) -> None:
    """It started a script when it had stopped all others, and left it and its files behind."""
    for number in range(12):
        place, served = tmp_path / str(number), list[Call]()
        dead = tasks_in(place)
        sealed = dead.store.seal({"name": "build"})
        for _ in range(9):
            dead.store.create(Task(life.new_id(), "", "build", idempotent=True, sealed_params=sealed))
        dead.close(is_client_gone=False)
        others = {"is_keeper": False, "next_serial": count().__next__}
        tasks = tasks_in(place, serve_call=served.append, **others)
        tasks._services.tasks = tasks  # type: ignore[misc]
        Services.recover_tasks(tasks._services)
        gevent.sleep(number / 1000)
        tasks.close(is_client_gone=False)
        gevent.sleep(0.01)
        assert all(call.is_cancelled for call in served), number


def test_what_happens_before_the_first_look_is_heard(tmp_path: Path) -> None:
    tasks = tasks_in(tmp_path)
    tasks._greenlet.kill()
    heard: list[Task] = []
    task = tasks.store.create(Task(life.new_id(), "", "build"))
    tasks.watch(task.id, heard.append)
    tasks.store.want_cancel(task.id)
    tasks._hear_news()
    tasks.store.close()
    assert [each.wants_cancel for each in heard] == [True]
