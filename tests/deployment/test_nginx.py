"""examples/proxy/nginx: three replicas behind nginx, as the file is but for ports and paths."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.deployment.cluster import EXAMPLES, Cluster, Replica, behind, certificate, filled_in, free_port, replicas_of
from tests.deployment.speaking import FORM, YES, Failed, Json, SessionGone, Speaker
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, modern_meta

MAIN = """
daemon off; worker_processes 2; pid nginx.pid; error_log stderr warn; user root;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    include {file};
}}
"""
WHERE = "echo $PPID"
STEPS = """source "${MCP_SDK:?}/tool-sdk.sh"
mcp_progress 50 "half"
until [[ -e $MCPBASH_PROJECT_ROOT/go ]]; do sleep 0.02; done
echo "$PPID"
"""
CONFIRM = """source "${MCP_SDK:?}/tool-sdk.sh"
echo "$PPID" >>"$MCPBASH_PROJECT_ROOT/runs"
answer=$(mcp_elicit_confirm "Go on?") || true
echo "$PPID $answer"
"""
NAP = "sleep 0.1; echo $PPID"
CLIENTS = 6
PAUSE_SECS = 0.02  # of each client between two calls: a request is on its way at any time all the same


@pytest.fixture(scope="module")
def shared_replicas(shared_project: ProjectBuilder) -> Iterator[list[Replica]]:
    shared_project.tool("where", WHERE)
    shared_project.tool("steps", STEPS)
    shared_project.tool("nap", NAP)
    shared_project.tool("confirm", CONFIRM, interaction="replay")
    shared_project.tool("once", CONFIRM)
    with replicas_of(shared_project.root) as replicas:
        yield replicas


@pytest.fixture(scope="module")
def cluster(shared_replicas: list[Replica], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("nginx")
    with nginx_before(shared_replicas, directory) as cluster:
        yield cluster


def nginx_before(replicas: list[Replica], directory: Path) -> AbstractContextManager[Cluster]:
    nginx = require_program("nginx")
    chain, key = certificate(directory)
    port = free_port()
    values = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/certs/mcp.example.com.pem": str(chain),
        "/etc/ssl/private/mcp.example.com.key": str(key),
        **{f"127.0.0.1:{8801 + index}": f"127.0.0.1:{each.port}" for index, each in enumerate(replicas)},
    }
    file = directory / "mcpgreen.conf"
    file.write_text(filled_in((EXAMPLES / "nginx" / "mcpgreen.conf").read_text("utf-8"), values), "utf-8")
    main = directory / "nginx.conf"
    main.write_text(MAIN.format(file=file), "utf-8")
    return behind([nginx, "-p", str(directory), "-c", str(main), "-e", "stderr"], replicas, port, directory)


def test_stateless_requests_reach_every_replica(cluster: Cluster) -> None:
    speaker = cluster.speaker()

    asked = {int(speaker.call("where")) for _ in range(40)}

    assert asked == {each.pid for each in cluster.replicas}
    assert {tool["name"] for tool in speaker.request("tools/list")["tools"]} >= {"where", "steps"}


def test_progress_comes_while_the_tool_runs(cluster: Cluster, shared_project: ProjectBuilder) -> None:
    speaker = cluster.speaker()
    params = {"name": "steps", "arguments": {}, "_meta": modern_meta(progressToken="t")}

    stream = speaker.start("tools/call", params)
    first = stream.next()
    shared_project.write("go", "")  # the tool waits for it: what has come by now was not held back
    try:
        answer = stream.answer()
    finally:
        shared_project.remove("go")

    assert first is not None and first["method"] == "notifications/progress"
    assert cluster.replica(int(answer["result"]["content"][0]["text"]))


def test_a_listen_is_told_about_a_new_tool(cluster: Cluster, shared_project: ProjectBuilder) -> None:
    speaker = cluster.speaker()
    stream = speaker.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    acknowledged = stream.next()

    shared_project.tool("late", "echo late")
    told = stream.next()

    assert acknowledged is not None and acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert told is not None and told["method"] == "notifications/tools/list_changed"


def test_another_replica_takes_the_answer_of_a_tool_that_may_be_repeated(
    cluster: Cluster, shared_project: ProjectBuilder
) -> None:
    speaker = cluster.speaker()
    asked = {"name": "confirm", "arguments": {}}

    def run_on() -> list[str]:
        shared_project.write("runs", "")
        question = speaker.request("tools/call", asked)
        assert question["resultType"] == "input_required"
        (key,) = question["inputRequests"]
        again = {**asked, "inputResponses": {key: YES}, "requestState": question["requestState"]}
        pid, _, answer = speaker.request("tools/call", again)["content"][0]["text"].partition(" ")
        assert '"action":"accept"' in answer
        runs = shared_project.read("runs").split()
        assert runs[-1] == pid
        return runs

    # The replica that asked has the script waiting; any other one runs it again.
    asked_and_answered = eventually(lambda: (runs := run_on())[1:] and runs)

    assert len(asked_and_answered) == len(set(asked_and_answered)) == 2


def test_each_session_stays_with_its_replica(cluster: Cluster, shared_project: ProjectBuilder) -> None:
    misses = not_found(cluster)
    speakers: list[Speaker] = []
    homes: set[int] = set()
    while len(speakers) < 4 or len(homes) < 2:
        speaker = cluster.speaker()
        speakers.append(speaker)
        speaker.handshake(FORM)
        own = speaker.get()
        (home,) = {int(speaker.call("where")) for _ in range(4)}
        homes.add(home)
        asking = speaker.start("tools/call", {"name": "once", "arguments": {}})
        assert speaker.say_yes(asking).startswith(f"{home} ")
        shared_project.tool(f"new-{len(homes)}-{speaker.session}", "echo")
        told = own.next()
        assert told is not None and told["method"] == "notifications/tools/list_changed"

    assert len({speaker.session for speaker in speakers}) == len(speakers)
    assert not_found(cluster) == misses  # nobody else was asked for them


def test_a_session_is_found_wherever_it_is(cluster: Cluster) -> None:
    """Its replica may have been away when it began, or replicas were added since."""
    for replica in cluster.replicas:
        for _ in range(2):
            speaker = cluster.speaker()
            speaker.session, speaker.version = replica.begin_session(), LATEST_HANDSHAKE
            assert speaker.call("where") == str(replica.pid)
    with pytest.raises(SessionGone):
        speaker.session = "0" * 32
        speaker.call("where")


def test_only_the_endpoint_is_open_to_the_world(cluster: Cluster) -> None:
    speaker = cluster.speaker()

    assert [speaker.fetch(path) for path in ("/metrics", "/healthz", "/")] == [404, 404, 404]
    assert speaker.fetch("/mcp") == 405  # the client's own words: nginx adds no session to a stateless request


def test_a_replica_that_is_killed_costs_its_own_calls_and_sessions_only(
    cluster: Cluster, shared_project: ProjectBuilder
) -> None:
    by_home: dict[int, Speaker] = {}
    while len(by_home) < len(cluster.replicas):
        speaker = cluster.speaker()
        speaker.handshake()
        by_home.setdefault(int(speaker.call("where")), speaker)
    running = {
        pid: speaker.start("tools/call", with_progress("steps"), is_aside=True) for pid, speaker in by_home.items()
    }
    assert all(stream.next() is not None for stream in running.values())
    victim = cluster.replicas[1]
    lost_pid = victim.pid

    victim.kill()

    shared_project.write("go", "")
    try:
        ended = {pid: outcome(stream.answer) for pid, stream in running.items()}
    finally:
        shared_project.remove("go")
    assert {pid for pid, each in ended.items() if each is not None} == {lost_pid}, ended
    for pid, speaker in by_home.items():
        if pid == lost_pid:
            with pytest.raises(SessionGone):
                speaker.call("where")
            speaker.handshake()
        assert int(speaker.call("where")) in {each.pid for each in cluster.replicas} - {lost_pid}
    stateless = cluster.speaker()
    assert lost_pid not in {int(stateless.call("where")) for _ in range(10)}
    victim.start()
    assert eventually(lambda: int(stateless.call("where")) == victim.pid)


def test_a_question_of_a_running_call_is_answered_while_its_replica_stops(cluster: Cluster) -> None:
    speaker = cluster.speaker()
    speaker.handshake(FORM)
    home = cluster.replica(int(speaker.call("where")))
    stream = speaker.start("tools/call", {"name": "once", "arguments": {}})
    question = stream.next()
    assert question is not None and question["method"] == "elicitation/create"

    home.ask_to_stop()
    eventually(lambda: is_draining(home))
    assert speaker.tell({"id": question["id"], "result": YES}) == 202

    assert stream.answer()["result"]["content"][0]["text"].startswith(f"{home.pid} ")
    home.wait()
    home.start()


def test_a_rolling_restart_under_load_costs_nothing(cluster: Cluster) -> None:
    load = Load([(cluster.speaker(), index % 3 == 0) for index in range(CLIENTS)])
    before = [each.pid for each in cluster.replicas]
    with load:
        for each in cluster.replicas:
            load.reaches(each.pid)
        for replica in cluster.replicas:
            replica.restart()
            load.reaches(replica.pid)

    assert load.failures == []
    assert load.asked >= {*before, *(each.pid for each in cluster.replicas)}


class Load:
    """Clients that call again and again; every third has a session, and begins a new one when it is told to."""

    def __init__(self, speakers: list[tuple[Speaker, bool]]) -> None:
        self.failures: list[str] = []
        self.asked: set[int] = set()
        self._counts = [0] * len(speakers)
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(index, *each), daemon=True) for index, each in enumerate(speakers)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(30)

    def reaches(self, pid: int) -> None:
        """Go on until this replica has been asked."""
        eventually(lambda: self.failures or pid in self.asked)

    def _run(self, index: int, speaker: Speaker, has_session: bool) -> None:
        is_new = has_session
        try:
            while not self._is_over.is_set():
                if is_new:
                    speaker.handshake()
                try:
                    self.asked.add(int(speaker.call("where" if self._counts[index] % 5 else "nap")))
                    is_new = False
                    self._counts[index] += 1
                    self._is_over.wait(PAUSE_SECS)
                except SessionGone:
                    is_new = True
        except Exception as failure:
            self.failures.append(f"{type(failure).__name__}: {failure}")


def with_progress(name: str) -> Json:
    return {"name": name, "arguments": {}, "_meta": {"progressToken": "t"}}


def outcome(action: Callable[[], object]) -> str | None:
    """None for a good one."""
    try:
        action()
    except Failed as failure:
        return str(failure)
    return None


def is_draining(replica: Replica) -> bool:
    return replica.fetch("/healthz").status == 503


def not_found(cluster: Cluster) -> int:
    """How often a replica has been asked for something that it does not have."""
    pattern = re.compile(rb'^mcpgreen_http_requests_total\{path="/mcp",status="404"\} (\d+)', re.MULTILINE)
    found = [pattern.search(replica.fetch("/metrics").body) for replica in cluster.replicas]
    return sum(int(each[1]) for each in found if each)
