"""The https provider, as a program against a real site."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.providers.conftest import Desk, Ended
from tests.providers.site import MIB, Site
from tests.support.waiting import eventually

Fetch = Callable[..., Ended]


def test_the_content_arrives_byte_for_byte(fetch: Fetch) -> None:
    assert fetch("/ok") == (0, b"caf\xc3\xa9\n\x00\xff\n", "")


def test_the_request_says_who_asks_and_wants_no_compression(fetch: Fetch, site: Site) -> None:
    request = json.loads(fetch("/request/ä?b=%20c#part").content)

    assert request["path"] == "/request/%C3%A4?b=%20c"
    assert request["host"] == f"127.0.0.1:{site.port}"
    assert request["accept-encoding"] == "identity"
    assert request["user-agent"].startswith("mcpgreen/")


def test_the_user_agent_can_be_chosen_and_cannot_add_headers(fetch: Fetch) -> None:
    request = json.loads(fetch("/request", https_user_agent="me\r\nX-Evil: 1 é").content)

    assert request["user-agent"] == "meX-Evil: 1"
    assert "x-evil" not in request


@pytest.mark.parametrize(
    ("path", "location"),
    [("/moved", "https://elsewhere.example/new"), ("/near", "https://127.0.0.1:{port}/ok")],
)
def test_a_redirect_is_named_and_not_followed(fetch: Fetch, site: Site, path: str, location: str) -> None:
    before = len(site.paths)

    assert fetch(path) == (7, b"", f"redirect:{location.format(port=site.port)}\n")
    assert site.paths[before:] == [path]


NO_PROXY = {"https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}
BOTH = "127.0.0.1 ::1"  # often ::1 comes first, where the site does not listen
LATE = {"https_timeout_secs": 0.4}


@pytest.mark.parametrize(
    ("path", "options", "status", "reason"),
    [
        ("/ok", {"env": NO_PROXY}, 0, ""),
        ("/ok", {"host": "localhost", "net_allow_addresses": BOTH}, 0, ""),
        ("/missing", {}, 5, "HTTP error: 404\n"),
        ("/broken", {}, 5, "HTTP error: 500\n"),
        ("/unchanged", {}, 5, "HTTP error: 304\n"),
        ("/big", {"https_max_bytes": MIB}, 0, ""),
        ("/big", {"https_max_bytes": MIB - 1}, 6, f"The resource is larger than {MIB - 1} bytes.\n"),
        ("/endless", {"https_max_bytes": MIB}, 6, f"The resource is larger than {MIB} bytes.\n"),
        ("/slow", LATE, 5, "Timed out after 0.4 seconds.\n"),  # each byte comes in time, only the whole does not
        ("/silent", LATE, 5, "Timed out after 0.4 seconds.\n"),
        ("/short", {}, 5, "\n"),
        ("/less", {}, 5, "bytes arrived.\n"),
        ("/cut", {}, 5, "\n"),
        ("/rubbish", {}, 5, "sent invalid HTTP"),
        ("/ok", {"host": "nowhere.invalid"}, 5, "Host nowhere.invalid cannot be resolved.\n"),
        ("/ok", {"host": "slow.test", "https_timeout_secs": 0.3}, 5, ""),
    ],
)
def test_each_response_has_its_status_and_reason(
    fetch: Fetch, path: str, options: dict[str, Any], status: int, reason: str
) -> None:
    ended = fetch(path, **options)

    assert ended.status == status
    assert reason in ended.reason
    assert ended.reason.count("\n") == bool(status)
    assert len(ended.content) <= MIB
    if path == "/big":
        assert len(ended.content) == (0 if status else MIB)  # the announced size was enough to refuse it


def test_a_name_is_connected_to_at_the_address_that_was_checked(fetch: Fetch, site: Site) -> None:
    assert fetch("/ok", host="pinned.test").status == 0
    assert site.names[-1] == "pinned.test"


@pytest.mark.parametrize(
    ("host", "settings", "reason"),
    [
        ("127.0.0.1", {"net_allow_addresses": ""}, "loopback"),
        ("127.0.0.1", {"https_allow_hosts": ""}, "MCPGREEN_HTTPS_ALLOW_HOSTS"),
        ("127.0.0.1", {"https_allow_hosts": "example.org"}, "MCPGREEN_HTTPS_ALLOW_HOSTS"),
        ("127.0.0.1", {"https_deny_hosts": "127.0.0.1"}, "MCPGREEN_HTTPS_DENY_HOSTS"),
        ("localhost", {"net_allow_addresses": ""}, "loopback"),
        ("pinned.test", {"net_allow_addresses": "127.0.0.2"}, "loopback"),
        ("mixed.test", {}, "private"),
        ("127.1", {}, "127.1"),
        ("0x7f000001", {}, "0x7f000001"),
        ("me@127.0.0.1", {"https_allow_all": "true"}, "user"),
    ],
)
def test_no_connection_is_made_when_the_guard_refuses(
    fetch: Fetch, site: Site, host: str, settings: dict[str, Any], reason: str
) -> None:
    before = site.connections
    ended = fetch("/ok", host=host, **settings)

    assert (ended.status, ended.content) == (4, b"")
    assert reason in ended.reason
    assert site.connections == before


def test_a_certificate_of_somebody_else_is_refused(fetch: Fetch, site: Site) -> None:
    ended = fetch("/ok", host="127.0.0.2", net_allow_addresses="127.0.0.2")
    strange = fetch("/ok", env={"SSL_CERT_FILE": "/dev/null"})

    assert ended.status == strange.status == 5
    assert "certificate of 127.0.0.1 is not valid" in strange.reason


def test_a_port_where_nobody_listens_is_a_failure(desk: Desk) -> None:
    ended = desk.run(
        "https", "https://127.0.0.1:1/", https_allow_all="true", net_allow_addresses="127.0.0.1", https_timeout_secs=5
    )

    assert ended == (5, b"", "Host 127.0.0.1 cannot be reached: Connection refused.\n")


def test_a_provider_that_is_told_to_end_ends_in_silence(desk: Desk, site: Site) -> None:
    before = len(site.paths)
    with desk.start(
        "https",
        f"https://127.0.0.1:{site.port}/silent",
        https_allow_all="true",
        net_allow_addresses="127.0.0.1",
    ) as child:
        eventually(lambda: len(site.paths) > before)
        child.send_signal(signal.SIGTERM)

        assert child.communicate(timeout=120) == (b"", b"")
    assert child.returncode != 0


def test_a_disk_that_is_full_is_not_blamed_on_the_server(desk: Desk, site: Site) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    settings = {"https_allow_all": "true", "net_allow_addresses": "127.0.0.1"}
    desk.command = ["sh", "-c", 'exec "$@" > /dev/full', "sh", *desk.command]
    ended = desk.run("https", f"https://127.0.0.1:{site.port}/big", **settings)

    assert ended == (5, b"", "The https provider failed: No space left on device.\n")
