"""docs/REMOTE.md, Serve with TLS: one server behind nginx, and behind Caddy; as on the page but for ports and paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.deployment.cluster import Cluster, Replica, behind, certificate, filled_in, free_port
from tests.deployment.speaking import FORM
from tests.deployment.test_nginx import MAIN
from tests.docs.reader import DOCS, blocks_of
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder

BLOCKS = {block.info: block.text for block in blocks_of(DOCS / "REMOTE.md")}
NGINX = BLOCKS["/etc/nginx/conf.d/mcpgreen.conf"]
CADDY = BLOCKS["/etc/caddy/Caddyfile"]
TOKEN = "t" * 40
STEPS = """source "${MCP_SDK:?}/tool-sdk.sh"
mcp_progress 50 "half"
until [[ -e $MCPBASH_PROJECT_ROOT/go ]]; do sleep 0.02; done
echo done
"""
CONFIRM = """source "${MCP_SDK:?}/tool-sdk.sh"
mcp_elicit_confirm "Go on?" >/dev/null && echo confirmed
"""


def nginx_command(server: Replica, port: int, directory: Path) -> Sequence[str]:
    nginx = require_program("nginx")
    chain, key = certificate(directory)
    values = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/certs/mcp.example.com.pem": str(chain),
        "/etc/ssl/private/mcp.example.com.key": str(key),
        "127.0.0.1:8808": f"127.0.0.1:{server.port}",
    }
    file = directory / "mcpgreen.conf"
    file.write_text(filled_in(NGINX, values), "utf-8")
    main = directory / "nginx.conf"
    main.write_text(MAIN.format(file=file), "utf-8")
    return [nginx, "-p", str(directory), "-c", str(main), "-e", "stderr"]


def caddy_command(server: Replica, port: int, directory: Path) -> Sequence[str]:
    """Caddy gets certificates from the internet, so the test has to bring one."""
    caddy = require_program("caddy")
    chain, key = certificate(directory)
    values = {
        "mcp.example.com {": f"https://mcp.example.com:{port} {{\n\ttls {chain} {key}\n\tbind 127.0.0.1",
        "127.0.0.1:8808": f"127.0.0.1:{server.port}",
    }
    file = directory / "Caddyfile"
    file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + filled_in(CADDY, values), "utf-8")
    return [caddy, "run", "--adapter", "caddyfile", "--config", str(file)]


PROXIES: dict[str, Callable[[Replica, int, Path], Sequence[str]]] = {"nginx": nginx_command, "caddy": caddy_command}


@pytest.fixture(scope="module", params=PROXIES)
def cluster(
    request: pytest.FixtureRequest, shared_project: ProjectBuilder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    shared_project.tool("hello", "echo hello")
    shared_project.tool("steps", STEPS)
    shared_project.tool("confirm", CONFIRM)
    exported = dict(re.findall(r"^export (\w+)=(\S+)", BLOCKS["serve-tls"], re.MULTILINE))
    server = Replica(shared_project.root, {**exported, "MCPGREEN_HTTP_TOKEN": TOKEN}).start()
    try:
        directory = tmp_path_factory.mktemp(request.param)
        port = free_port()
        command = PROXIES[request.param](server, port, directory)
        with behind(command, [server], port, directory) as cluster:
            yield cluster
    finally:
        server.end()


def test_the_files_are_as_short_as_they_look() -> None:
    assert (len(NGINX.splitlines()), len(CADDY.splitlines())) == (10, 3)


def test_tools_are_called_with_the_token_and_not_without(cluster: Cluster) -> None:
    assert cluster.speaker(TOKEN).call("hello") == "hello"
    assert cluster.speaker("x" * 40).start("tools/list").status == 401
    assert cluster.speaker().start("tools/list").status == 401


def test_progress_comes_while_the_tool_runs(cluster: Cluster, shared_project: ProjectBuilder) -> None:
    go = shared_project.root / "go"
    go.unlink(missing_ok=True)
    params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": 1}}
    speaker = cluster.speaker(TOKEN)
    speaker.handshake()

    stream = speaker.start("tools/call", params)
    first = stream.next()
    go.touch()

    assert first is not None and first["params"]["message"] == "half"
    assert stream.answer()["result"]["content"][0]["text"] == "done\n"


def test_a_question_reaches_the_client_and_its_answer_the_script(cluster: Cluster) -> None:
    speaker = cluster.speaker(TOKEN)
    speaker.handshake(FORM)

    asking = speaker.start("tools/call", {"name": "confirm", "arguments": {}})

    assert speaker.say_yes(asking) == "confirmed\n"


def test_a_request_as_large_as_the_server_takes_is_let_through(cluster: Cluster) -> None:
    assert cluster.speaker(TOKEN).call("hello", text="x" * 3_000_000) == "hello"


def test_nothing_else_of_the_server_is_reached(cluster: Cluster) -> None:
    (server,) = cluster.replicas
    own = server.fetch("/healthz").body

    assert own
    assert cluster.speaker(TOKEN).read("/healthz") != own
    assert b"mcpgreen_" not in cluster.speaker(TOKEN).read("/metrics")
