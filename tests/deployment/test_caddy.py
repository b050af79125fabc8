"""examples/proxy/caddy: three replicas behind Caddy, as the file is but for ports and paths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment.cluster import EXAMPLES, Cluster, behind, certificate, filled_in, free_port, replicas_of
from tests.deployment.speaking import FORM, Failed, Speaker
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

CONFIRM = """source "${MCP_SDK:?}/tool-sdk.sh"
answer=$(mcp_elicit_confirm "Go on?") || true
echo "$PPID $answer"
"""


@pytest.fixture(scope="module")
def cluster(shared_project: ProjectBuilder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    caddy = require_program("caddy")
    shared_project.tool("where", "echo $PPID")
    shared_project.tool("confirm", CONFIRM)
    directory = tmp_path_factory.mktemp("caddy")
    chain, key = certificate(directory)
    port = free_port()
    with replicas_of(shared_project.root) as replicas:
        values = {
            "mcp.example.com {": f"https://mcp.example.com:{port} {{\n\ttls {chain} {key}\n\tbind 127.0.0.1",
            **{f"127.0.0.1:{8801 + index}": f"127.0.0.1:{each.port}" for index, each in enumerate(replicas)},
        }
        text = filled_in((EXAMPLES / "caddy" / "Caddyfile").read_text("utf-8"), values)
        file = directory / "Caddyfile"
        file.write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text, "utf-8")
        with behind([caddy, "run", "--config", str(file)], replicas, port, directory) as cluster:
            yield cluster


def test_stateless_requests_reach_every_replica(cluster: Cluster) -> None:
    speaker = cluster.speaker()

    assert {int(speaker.call("where")) for _ in range(40)} == {each.pid for each in cluster.replicas}
    assert speaker.fetch("/mcp") == 405
    assert [speaker.fetch(path) for path in ("/metrics", "/healthz", "/")] == [404, 404, 404]


def test_each_session_stays_with_its_replica(cluster: Cluster) -> None:
    homes = set()
    for _ in range(6):
        speaker = cluster.speaker()
        speaker.handshake(FORM)
        (home,) = {int(speaker.call("where")) for _ in range(4)}
        homes.add(home)
        asking = speaker.start("tools/call", {"name": "confirm", "arguments": {}})
        assert speaker.say_yes(asking).startswith(f"{home} ")

    assert len(homes) > 1


def test_a_replica_that_is_gone_is_soon_not_asked(cluster: Cluster) -> None:
    """Not at once: the request that finds it gone may be lost, because Caddy 2.6 has closed its body then."""
    victim = cluster.replicas[0]
    lost = victim.pid

    speaker = cluster.speaker()
    victim.kill()

    asked = {eventually(lambda: asked_by(speaker)) for _ in range(20)}
    assert lost not in asked
    victim.start()
    assert eventually(lambda: asked_by(speaker) == victim.pid)


def asked_by(speaker: Speaker) -> int:
    """0 if the proxy could not say."""
    try:
        return int(speaker.call("where"))
    except Failed:
        return 0
