"""Who gets into the workbench, and who gets nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.workbench.dev_server import Dev

PRIVATE = "/api/catalog"


def refused(dev: Dev, path: str = PRIVATE, method: str = "GET", body: object = None, **headers: str) -> int:
    """Send a request that must learn nothing about the project; return its status."""
    reply = dev.send(method, path, body, **headers)
    content = reply.content.decode("utf-8")
    assert "test-project" not in content and list(json.loads(content)) == ["error"]
    assert "Access-Control-Allow-Origin" not in reply.headers
    return reply.status


def test_the_token_works_once_and_becomes_a_cookie_for_this_site_alone(project: ProjectBuilder) -> None:
    with Dev(project.root) as dev:
        path = f"/?token={dev.token}"
        assert refused(dev) == refused(dev, "/?token=wrong") == refused(dev, path, Host="evil.example") == 403
        first = dev.send("GET", path)
        assert (first.status, first.headers["Location"]) == (303, "/")
        cookie, *flags = first.headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict"} <= set(flags) and "Domain" not in str(flags)

        assert refused(dev, path) == refused(dev, Cookie=cookie[:-1]) == refused(dev, Cookie="a=b; =;") == 403
        assert dev.send("GET", PRIVATE, Cookie=f"other=1; {cookie}").status == 200
        assert dev.send("GET", path, Cookie=cookie).status == 303, "the browser may go back"
        dev.process.send_signal(2)
        assert dev.wait() == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": ""},
    ],
)
def test_another_site_gets_nothing_even_with_the_cookie(dev: Dev, headers: dict[str, str]) -> None:
    headers = {name: value.format(port=dev.port) for name, value in headers.items()}
    line = {"name": "x"}
    assert refused(dev, **headers) == refused(dev, "/api/test", "POST", line, **headers) == 403


def test_our_own_page_is_let_in_by_both_names(dev: Dev) -> None:
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{dev.port}"
        assert dev.send("GET", PRIVATE, Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin").status == 200


@pytest.mark.parametrize("path", ["/../door.py", "/..%2fdoor.py", "/%2e%2e/door.py", "//etc/passwd", "/page", "/."])
def test_only_the_files_of_the_page_can_be_read(dev: Dev, path: str) -> None:
    assert refused(dev, path) == 404


def test_the_page_is_under_a_strict_policy(dev: Dev) -> None:
    page = dev.send("GET", "/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff" and page.headers["Cache-Control"] == "no-store"
    assert dev.send("GET", "/main.js").headers["Content-Type"] == "text/javascript; charset=utf-8"


def test_a_body_is_json_and_within_limits(dev: Dev) -> None:
    assert refused(dev, "/api/test", "POST", b"name=x", Content_Type="application/x-www-form-urlencoded") == 415
    assert refused(dev, "/api/test", "POST", b"[1]") == refused(dev, "/api/test", "POST", b"{") == 400
    assert refused(dev, "/api/test", "POST", {"name": 1}) == refused(dev, "/api/request", "POST", {"method": 1}) == 400
    assert refused(dev, "/api/test") == refused(dev, "/api/catalog", "POST", {}) == 404
    with socket.create_connection(("127.0.0.1", dev.port)) as connection:
        head = f"POST /api/test HTTP/1.1\r\nHost: 127.0.0.1:{dev.port}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Cookie: {dev.cookie}\r\nContent-Length: 999999999\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("port", ["x", "65536", "-1", "taken"])
def test_a_port_that_cannot_be_used_is_refused(dev: Dev, shared_project: ProjectBuilder, port: str) -> None:
    port = str(dev.port) if port == "taken" else port
    done = mcpgreen("dev", f"--port={port}", "--no-open", "--project-root", str(shared_project.root))
    assert (done.returncode, done.stdout) == (2, "") and "--port" in done.stderr and "--http" not in done.stderr


def test_the_browser_gets_the_url_and_outlives_the_workbench(project: ProjectBuilder, tmp_path: Path) -> None:
    project.tool("stats", "echo 3")
    browser = project.program(
        "browser", f'echo $$ "$1" > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/opened; sleep 60'
    )
    with Dev(project.root, env={"BROWSER": str(browser)}, options=()) as dev:
        pid, url = eventually(lambda: (path := tmp_path / "opened").exists() and path.read_text().split())
        try:
            assert url == f"http://127.0.0.1:{dev.port}/?token={dev.token}"
            dev.enter().play("stats").wait_for("answer")
            dev.end()
            assert is_alive(pid)
        finally:
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs two users, on Linux")
def test_another_user_gets_nothing_even_with_the_url(project: ProjectBuilder) -> None:
    with Dev(project.root) as dev:
        head = f"GET /?token={dev.token} HTTP/1.0\\r\\nHost: 127.0.0.1:{dev.port}\\r\\n\\r\\n"
        ask = f"exec 3<>/dev/tcp/127.0.0.1/{dev.port} && printf '{head}' >&3; cat <&3"
        assert completed(["bash", "-c", ask], user=65534, cwd="/").stdout == ""
        assert dev.enter().send("GET", PRIVATE).status == 200, "the token is still unused"
