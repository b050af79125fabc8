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


def test_proxies_of_the_environment_are_not_used(fetch: Fetch) -> None:
    assert fetch("/ok", env={"https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}).status == 0


@pytest.mark.parametrize(
    ("path", "location"),
    [("/moved", "https://elsewhere.example/new"), ("/near", "https://127.0.0.1:{port}/ok")],
)
def test_a_redirect_is_named_and_not_followed(fetch: Fetch, site: Site, path: str, location: str) -> None:
    before = len(site.paths)

    assert fetch(path) == (7, b"", f"redirect:{location.format(port=site.port)}\n")
    assert site.paths[before:] == [path]


@pytest.mark.parametrize(("path", "code"), [("/missing", 404), ("/broken", 500), ("/unchanged", 304)])
def test_an_error_of_the_server_is_named(fetch: Fetch, path: str, code: int) -> None:
    assert fetch(path) == (5, b"", f"HTTP error: {code}\n")


def test_what_is_announced_too_large_is_not_read(fetch: Fetch) -> None:
    ended = fetch("/big", https_max_bytes=MIB - 1)

    assert (ended.status, ended.content) == (6, b"")
    assert f"{MIB - 1} bytes" in ended.reason


def test_what_is_just_small_enough_is_read(fetch: Fetch) -> None:
    ended = fetch("/big", https_max_bytes=MIB)

    assert (ended.status, len(ended.content)) == (0, MIB)


def test_what_never_ends_is_cut_at_the_limit(fetch: Fetch) -> None:
    ended = fetch("/endless", https_max_bytes=MIB)

    assert ended.status == 6
    assert len(ended.content) <= MIB


@pytest.mark.parametrize("path", ["/slow", "/silent"])
def test_a_server_that_takes_too_long_is_left(fetch: Fetch, path: str) -> None:
    """Each byte of /slow comes in time; only the whole does not."""
    ended = fetch(path, https_timeout_secs=0.4)

    assert (ended.status, ended.reason) == (5, "Not finished after 0.4 seconds.\n")


@pytest.mark.parametrize("path", ["/short", "/less", "/cut", "/rubbish"])
def test_half_an_answer_is_a_failure(fetch: Fetch, path: str) -> None:
    ended = fetch(path)

    assert ended.status == 5
    assert ended.reason.count("\n") == 1


def test_a_name_is_connected_to_at_the_address_that_was_checked(fetch: Fetch, site: Site) -> None:
    assert fetch("/ok", host="pinned.test").status == 0
    assert site.names[-1] == "pinned.test"


def test_a_second_address_is_tried_when_the_first_does_not_answer(fetch: Fetch) -> None:
    """Often ::1 comes first, where nobody listens."""
    assert fetch("/ok", host="localhost", net_allow_addresses="127.0.0.1 ::1").status == 0


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
def test_a_closed_guard_means_that_nobody_is_connected_to(
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


def test_certificates_may_also_come_from_where_curl_has_them(fetch: Fetch, desk: Desk) -> None:
    bundle = desk.env["SSL_CERT_FILE"]

    assert fetch("/ok", env={"SSL_CERT_FILE": "/dev/null", "CURL_CA_BUNDLE": bundle}).status == 0
    assert fetch("/ok", env={"CURL_CA_BUNDLE": "/nowhere"})[:2] == (4, b"")


def test_a_host_that_cannot_be_resolved_is_named(fetch: Fetch) -> None:
    ended = fetch("/ok", host="nowhere.invalid")

    assert (ended.status, ended.reason) == (5, "Host nowhere.invalid cannot be resolved.\n")


def test_a_resolver_that_does_not_answer_does_not_hold_us(fetch: Fetch) -> None:
    ended = fetch("/ok", host="slow.test", https_timeout_secs=0.3)

    assert ended.status == 5


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
