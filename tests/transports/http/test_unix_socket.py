"""A server at a Unix socket: for its owner alone, and without traces."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from tests.support.http import Serve
from tests.support.project import ProjectBuilder
from tests.support.waiting import PATIENCE_SECS
from tests.transports.http.attacking import Answer, Raw, discovery, head


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mcp.sock"


def asked(path: Path, data: bytes) -> Answer:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_SECS)
        sock.connect(str(path))
        return Raw(sock).send(data).answer()


def test_only_its_owner_can_reach_it_and_it_goes_with_the_server(
    serve: Serve, project: ProjectBuilder, path: Path
) -> None:
    server = serve(address=f"unix:{path}")
    assert server.url == f"http+unix://{path}:/mcp"
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert asked(path, discovery(host="any.name")).status == 200
    assert asked(path, head("GET", "/healthz", "Origin: http://evil.example")).status == 403
    assert server.stop() == 0
    assert not path.exists()


def test_a_socket_that_a_killed_server_left_makes_way(serve: Serve, project: ProjectBuilder, path: Path) -> None:
    first = serve(address=f"unix:{path}")
    assert first.url
    first.kill()
    assert path.is_socket()
    assert serve(address=f"unix:{path}").url
    assert asked(path, discovery()).status == 200


def test_a_socket_that_is_answered_stays(serve: Serve, project: ProjectBuilder, path: Path) -> None:
    assert serve(address=f"unix:{path}").url
    second = serve(address=f"unix:{path}")
    assert second.wait() != 0
    assert "in use" in second.stderr
    assert asked(path, discovery()).status == 200


def test_what_is_no_socket_stays(serve: Serve, project: ProjectBuilder, path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("data")
    link = tmp_path / "link"
    link.symlink_to(path)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    for each in (precious, link, dangling, tmp_path):
        server = serve(address=f"unix:{each}")
        assert server.wait() != 0
        assert "Traceback" not in server.stderr
    assert precious.read_text() == "data"
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_path_that_cannot_be_is_refused(serve: Serve, project: ProjectBuilder, tmp_path: Path) -> None:
    for each in (tmp_path / "missing" / "mcp.sock", tmp_path / ("x" * 200)):
        server = serve(address=f"unix:{each}")
        assert server.wait() != 0
        assert "choose another address" in server.stderr


def test_the_socket_of_a_later_server_is_not_removed(serve: Serve, project: ProjectBuilder, path: Path) -> None:
    """Who ended removed the path, whoever's it was by then."""
    first = serve(address=f"unix:{path}")
    assert first.url
    path.unlink()
    second = serve(address=f"unix:{path}")
    assert second.url
    assert first.stop() == 0
    assert asked(path, discovery()).status == 200


def test_a_server_that_does_not_start_leaves_no_socket(serve: Serve, project: ProjectBuilder, path: Path) -> None:
    assert serve(address=f"unix:{path}", http_token="short").wait() == 1
    assert not path.exists()
