"""Who may look into a running server, and what that costs the server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from mcpgreen.events import places
from mcpgreen.events.attach import attach, running_servers
from tests.support.client import Speak
from tests.support.http import HttpServer
from tests.support.prerequisites import (
    as_ordinary_user,
    python_of_ordinary_user,
    require_our_python_for_ordinary_user,
)
from tests.support.project import ProjectBuilder
from tests.support.viewer import Viewer, socket_of
from tests.support.waiting import eventually
from tests.support.wire import text_of

CONNECT = """import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(9)
s.connect(path)
print(len(s.recv(9)))
"""


def test_a_running_server_is_found_and_leaves_no_socket(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("plain", "echo")
    client = speak("2025-11-25")
    client.call_tool("plain")
    path = socket_of(client.wire.pid)
    found = {each["pid"]: each for each in running_servers()}[client.wire.pid]

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert found["transport"] == "stdio"
    assert (found["project"], found["client"], found["calls"]) == (str(project.root), "tests", 1)
    assert client.wire.stop() == 0
    assert not path.exists()


def test_the_setting_keeps_viewers_out(project: ProjectBuilder, speak: Speak) -> None:
    watched, unwatched = speak("2025-11-25"), speak("2025-11-25", observe="off")
    socket_of(watched.wire.pid)
    unwatched.wire.request("ping")

    assert unwatched.wire.pid not in dict(places.sockets(os.environ))


def test_a_killed_server_is_forgotten(project: ProjectBuilder, speak: Speak) -> None:
    client = speak("2025-11-25")
    path = socket_of(client.wire.pid)
    os.kill(client.wire.pid, signal.SIGKILL)
    client.wire.wait()

    assert client.wire.pid not in [each["pid"] for each in running_servers()]
    assert not path.exists()


def test_the_socket_of_a_killed_server_that_ran_scripts_is_removed(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("plain", "echo")
    client = speak("2025-11-25")
    client.call_tool("plain")
    path = socket_of(client.wire.pid)
    client.call_tool("plain")  # the server has told its guardian by then
    os.kill(client.wire.pid, signal.SIGKILL)
    client.wire.wait()

    eventually(lambda: not path.exists())


def test_a_server_over_http_shows_the_calls_of_its_clients(project: ProjectBuilder, serve: type[HttpServer]) -> None:
    project.tool("plain", "echo")
    server = serve()
    viewer = Viewer(server.pid)
    session = server.session()
    session.call_tool("plain")

    assert viewer.get("opened")["transport"] == "http"
    ended = viewer.get("ended", name="plain")
    assert ended["link"] == viewer.get("queued", name="plain")["link"] == viewer.get("opened")["link"]
    assert viewer.get("frame", way="in", method="tools/call")


def test_a_script_of_the_server_gets_nothing(project: ProjectBuilder, speak: Speak) -> None:
    """It would see what other callers send and get."""
    project.python_tool("spy", f"path = open('path').read()\n{CONNECT}")
    client = speak("2025-11-25")
    project.write("path", str(socket_of(client.wire.pid)))

    assert text_of(client.call_tool("spy")) == "0\n"


def test_another_user_gets_nothing(project: ProjectBuilder, speak: Speak) -> None:
    become = as_ordinary_user()
    require_our_python_for_ordinary_user()
    runtime = Path("/tmp") / f"mcpgreen-runtime-{os.getpid()}"
    runtime.mkdir(mode=0o700)
    client = speak("2025-11-25", env={"XDG_RUNTIME_DIR": str(runtime)})
    path = runtime / "mcpgreen" / f"{client.wire.pid}.sock"
    eventually(path.exists)
    attempt = [*become, python_of_ordinary_user(), "-c", f"path = {str(path)!r}\n{CONNECT}"]
    try:
        if os.geteuid() == 0:
            assert subprocess.run(attempt, capture_output=True, check=False, cwd="/").returncode != 0
            for each, mode in ((path, 0o666), (path.parent, 0o755), (runtime, 0o755)):
                os.chmod(each, mode)
            # Where everybody may enter, the server itself refuses.
            assert subprocess.run(attempt, capture_output=True, text=True, check=False, cwd="/").stdout == "0\n"
    finally:
        client.wire.stop()
        shutil.rmtree(runtime)


def test_a_viewer_that_never_reads_delays_no_call_and_learns_what_it_missed(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("plain", "echo")
    client = speak("2025-11-25", MAX_UNSENT_BYTES=100_000)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(socket_of(client.wire.pid)))
    assert connection.recv(1)
    arguments = {f"n{number}": "y" * 800 for number in range(5)}
    for id in [client.start_tool("missing", arguments) for _ in range(200)]:
        client.wire.response(id)
    assert client.call_tool("plain")

    received = b""
    connection.settimeout(60)
    while b'"kind":"lost"' not in received:
        client.wire.request("ping")  # an event: it comes after the number of those that were lost
        received = received[-100:] + connection.recv(1 << 16)
    connection.close()
    assert client.call_tool("plain")


def test_there_are_only_so_many_viewers(
    project: ProjectBuilder, speak: Speak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # where no other test looks for servers
    client = speak("2025-11-25", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    path = str(socket_of(client.wire.pid))
    viewers = [attach(path) for _ in range(8)]
    for each in viewers:
        assert next(each)["kind"] == "server"
    assert next(attach(path), None) is None
    viewers.pop().close()

    assert eventually(lambda: next(attach(path), None))


@pytest.mark.parametrize("taken_by", ["link", "file", "stranger"])
def test_a_place_that_somebody_has_taken_is_left_alone(taken_by: str, tmp_path: Path) -> None:
    place = tmp_path / f"mcpgreen-{os.geteuid()}"
    if taken_by == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif taken_by == "file":
        place.touch()
    elif os.geteuid() == 0:
        place.mkdir(mode=0o700)
        os.chown(place, 12345, 12345)
    else:
        pytest.skip("only root can give a directory to somebody else")
    with socket.socket(socket.AF_UNIX) as listener:
        path = Path(places.bind(listener, {"TMPDIR": str(tmp_path)}))
        found = dict(places.sockets({"TMPDIR": str(tmp_path)}))
    path.unlink()

    assert path.parent != place
    assert found[os.getpid()] == str(path)
    assert not (tmp_path / "elsewhere").exists() or not any((tmp_path / "elsewhere").iterdir())
