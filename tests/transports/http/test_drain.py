"""The end of a server that others speak to: nobody new, what runs may finish, and streams end as they should."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import subprocess
import time

import pytest

from mcpgreen.transports.http.serving import LAST_WORDS_SECS, LEAST_IDLE_SECS
from tests.support.http import HttpServer, Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import text_of
from tests.transports.http.attacking import asked, discovery, head, raw

GATE = 'echo $$ >"$MCPGREEN_PROJECT_ROOT/pid"; until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.01; done; echo done'


def is_draining(server: HttpServer) -> bool:
    try:
        return asked(server, head("GET", "/healthz")).status == 503
    except (OSError, AssertionError):
        return False


def begun(project: ProjectBuilder) -> int:
    return int(eventually(lambda: (project.root / "pid").exists() and project.read("pid").strip()))


@pytest.mark.requirement("G-http-drain")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_call_that_runs_is_finished_and_nobody_new_is_served(
    serve: Serve, project: ProjectBuilder, number: signal.Signals
) -> None:
    project.tool("gate", GATE)
    server = serve(shutdown_timeout=60)
    calls = [server.session().start_tool("gate")]
    begun(project)
    project.remove("pid")
    calls.append(server.stateless().start_tool("gate"))
    begun(project)

    server.process.send_signal(number)

    eventually(lambda: is_draining(server))
    answer = asked(server, discovery())
    assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")
    project.write("go", "")
    for call in calls:
        assert call.result()["content"][0]["text"] == "done\n"
    assert server.wait() == 0


@pytest.mark.requirement("G-http-listen", "G-http-drain")
def test_streams_end_as_they_should(serve: Serve) -> None:
    server = serve()
    session = server.session()
    standing = session.get()
    assert standing.next_event() is not None
    listen = server.stateless().listen(toolsListChanged=True)

    server.process.terminate()

    assert standing.rest() == []
    (last,) = listen.rest()
    assert last["result"]["resultType"] == "complete"
    assert server.wait() == 0


def test_idle_connections_do_not_stay_for_a_call_that_runs(serve: Serve, project: ProjectBuilder) -> None:
    project.tool("gate", GATE)
    server = serve(shutdown_timeout=60)
    with raw(server) as idle:
        assert idle.send(discovery()).answer().status == 200
        call = server.stateless().start_tool("gate")
        begun(project)
        server.process.terminate()
        assert idle.is_closed
        project.write("go", "")
        assert call.result()["content"][0]["text"] == "done\n"
    assert server.wait() == 0


def test_who_has_begun_a_request_is_told(serve: Serve, project: ProjectBuilder) -> None:
    project.tool("gate", GATE)
    server = serve(shutdown_timeout=60)
    with raw(server) as half:
        half.send(discovery()[:40])
        call = server.stateless().start_tool("gate")
        begun(project)
        server.process.terminate()
        eventually(lambda: is_draining(server))
        assert half.send(discovery()[40:]).answer().status == 503
        project.write("go", "")
        assert call.result()["content"][0]["text"] == "done\n"
    assert server.wait() == 0


@pytest.mark.requirement("G-http-drain")
def test_a_call_that_takes_too_long_is_stopped(serve: Serve, project: ProjectBuilder) -> None:
    project.tool("gate", GATE)
    server = serve(shutdown_timeout=0.2)
    call = server.stateless().start_tool("gate")
    pid = begun(project)
    server.process.terminate()
    with contextlib.suppress(OSError):
        assert "stopping" in call.error()["message"]
    assert server.wait() == 0
    eventually(lambda: not is_alive(pid))


def test_a_second_signal_ends_it_at_once(serve: Serve, project: ProjectBuilder) -> None:
    project.tool("gate", GATE)
    server = serve(shutdown_timeout=600)
    server.session().start_tool("gate")
    server.stateless().listen(toolsListChanged=True)
    pid = begun(project)
    server.process.terminate()
    eventually(lambda: is_draining(server))
    server.process.terminate()
    assert server.wait() == 0
    eventually(lambda: not is_alive(pid))


def test_readers_that_stop_do_not_keep_it(serve: Serve, project: ProjectBuilder) -> None:
    from tests.transports.http.test_attacks_slow import LARGE, large_call

    project.tool("large", LARGE.format(size=9 << 20))
    server = serve(SEND_SECS=600, shutdown_timeout=0.2)
    with raw(server) as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.send(large_call())
        assert connection.exactly(1000)
        assert server.stop() == 0


def test_an_answer_that_is_being_read_is_sent_to_its_end(serve: Serve, project: ProjectBuilder) -> None:
    """A call was over for the server once it had its result: who read a large one for more than a second lost it."""
    from tests.transports.http.test_attacks_slow import LARGE, large_call

    project.tool("large", LARGE.format(size=9 << 20))
    server = serve(shutdown_timeout=60)
    with raw(server) as connection:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.send(large_call())
        eventually(lambda: select.select([connection.sock], [], [], 0)[0])
        server.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(within_secs=LAST_WORDS_SECS + 0.5)
        answer = connection.answer()
    assert len(answer.json()["result"]["content"][0]["text"]) == 9 << 20
    assert server.wait() == 0


def test_who_comes_after_the_end_is_refused(serve: Serve, project: ProjectBuilder) -> None:
    server = serve()
    address = server.address
    assert server.stop() == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    assert "Traceback" not in server.stderr


def test_a_connection_that_was_kept_has_one_answer_more(serve: Serve, project: ProjectBuilder) -> None:
    """It was closed at once. A proxy that had just sent a request could not know whether it was begun, and gave up."""
    project.tool("gate", GATE)  # without a call that runs, the server would be gone too soon

    def kept_connection() -> tuple[int, str] | None:
        """How it is answered. None if the machine was so busy that it had to be given up."""
        server = serve(shutdown_timeout=60)
        with raw(server) as kept:
            assert kept.send(discovery()).answer().status == 200
            server.stateless().start_tool("gate")
            begun(project)
            server.process.terminate()
            since = time.monotonic()
            try:
                eventually(lambda: is_draining(server))
                answer = kept.send(discovery()).answer()
                return answer.status, answer.headers["connection"]
            except (OSError, AssertionError):
                assert time.monotonic() - since > LEAST_IDLE_SECS / 2
                return None
            finally:
                server.end()

    assert eventually(kept_connection) == (503, "close")


def test_a_session_may_still_answer_and_end(serve: Serve, project: ProjectBuilder) -> None:
    """A call that asks could not be finished: its answer was refused like a request."""
    project.tool("confirm", 'source "${MCP_SDK:?}/tool-sdk.sh"\nmcp_elicit_confirm "Go on?"')
    server = serve(shutdown_timeout=60)
    client, other = server.session(capabilities={"elicitation": {}}), server.session()
    running = client.start_tool("confirm")
    question = running.asked("elicitation/create")

    server.process.terminate()
    eventually(lambda: is_draining(server))

    refused = client.start("tools/list", id=77)
    assert (refused.status, refused.json()["id"]) == (503, 77)
    assert client.get().status == 503
    assert other.delete().status == 204
    client.answer(question, {"action": "accept", "content": {"confirmed": True}})
    assert '"accept"' in text_of(running.result())
    assert server.wait() == 0


def test_a_client_may_still_come_back_for_the_rest_of_a_call(serve: Serve, project: ProjectBuilder) -> None:
    """Its connection was lost and its GET refused, so that the call was finished for nobody."""
    project.tool("walk", f'source "$MCP_SDK/tool-sdk.sh"; mcp_progress 10; {GATE}')
    server = serve(shutdown_timeout=60)
    client = server.session()
    first = client.start_tool("walk", meta={"progressToken": 1})
    first.notice("notifications/progress")
    first.close()

    server.process.terminate()
    eventually(lambda: is_draining(server))
    second = client.get(last_event_id=first.last_event_id)
    project.write("go", "")

    assert text_of(second.result()) == "done\n"
    assert server.wait() == 0


def test_answers_to_the_questions_of_running_calls_may_come_as_a_batch(serve: Serve, project: ProjectBuilder) -> None:
    """Revision 2025-03-26 has batches, of answers too. They were refused, because there might be requests in them."""
    project.tool("sample", 'source "$MCP_SDK/tool-sdk.sh"; mcp_sample \'"Say hi."\' 10')
    server = serve(shutdown_timeout=60)
    client = server.session("2025-03-26", capabilities={"sampling": {}})
    running = client.start_tool("sample")
    question = running.asked("sampling/createMessage")

    server.process.terminate()
    eventually(lambda: is_draining(server))
    said = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m", "stopReason": "endTurn"}
    answers = client.post([{"jsonrpc": "2.0", "id": question["id"], "result": said}])
    refused = client.post([{"jsonrpc": "2.0", "id": 5, "method": "ping"}])

    assert (answers.status, refused.status) == (202, 503)
    assert "hi" in text_of(running.result())
    assert server.wait() == 0
