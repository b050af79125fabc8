"""Which hosts and addresses the network providers may speak to."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Any

import pytest

from mcpgreen.providers.exits import REFUSED, ProviderFailure
from mcpgreen.providers.netguard import Guard, canonical_host, why_not_public
from mcpgreen.settings.settings import load


def guard(**settings: str) -> Guard:
    return Guard("https", load({}, {f"MCPGREEN_{name.upper()}": value for name, value in settings.items()}, {}))


def refusal(guard: Guard, host: str) -> str:
    """Why the host is refused; empty if it is not."""
    try:
        guard.require_allowed(canonical_host(host))
    except ProviderFailure as failure:
        assert failure.status == REFUSED
        return failure.text
    return ""


NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7
    203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::808:808
    64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:db8::1
    2002:7f00:1:: 2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1 fd12:3456::1 fe80::1 fec0::1 ff02::1
"""


@pytest.mark.parametrize("address", NOT_PUBLIC.split())
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert why_not_public(ip_address(address))
    assert "address" in refusal(guard(https_allow_all="true"), address)
    assert "address" in refusal(guard(https_allow_hosts=address), address)


PUBLIC = """
    1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 172.15.0.1 172.32.0.1
    192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255
    2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111 2a00::1
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_a_public_address_passes(address: str) -> None:
    assert why_not_public(ip_address(address)) == ""
    assert refusal(guard(https_allow_all="true"), address) == ""
    assert guard(https_allow_hosts=address).addresses(address, 443, within_secs=60) == (address,)


@pytest.mark.parametrize(
    ("settings", "host", "is_allowed"),
    [
        ({}, "example.org", False),
        ({"https_allow_hosts": "example.org"}, "example.org", True),
        ({"https_allow_hosts": "example.org"}, "EXAMPLE.org.", True),
        ({"https_allow_hosts": "Example.ORG., other.example"}, "example.org", True),
        ({"https_allow_hosts": "bücher.example"}, "xn--bcher-kva.example", True),
        ({"https_allow_hosts": "example.org"}, "www.example.org", False),
        ({"https_allow_hosts": "example.org"}, "example.org.evil.example", False),
        ({"https_allow_hosts": "example.org"}, "notexample.org", False),
        ({"https_allow_hosts": "*.example.org"}, "www.example.org", False),
        ({"https_allow_hosts": "*"}, "example.org", True),
        ({"https_allow_hosts": "https://example.org/ example.org:443"}, "example.org", False),
        ({"https_allow_all": "true"}, "example.org", True),
        ({"https_allow_all": "maybe"}, "example.org", False),
        ({"https_allow_all": "true", "https_deny_hosts": "example.org"}, "Example.Org.", False),
        ({"https_allow_hosts": "example.org", "https_deny_hosts": "EXAMPLE.ORG"}, "example.org", False),
        ({"https_allow_all": "true", "https_deny_hosts": "8.8.8.8"}, "8.8.8.8", False),
        ({"https_allow_all": "true", "https_deny_hosts": "2001:4860::8888"}, "2001:4860:0:0::8888", False),
        ({"https_allow_all": "true", "https_deny_hosts": "other.example"}, "example.org", True),
    ],
)
def test_the_lists_decide_about_names(settings: dict[str, str], host: str, is_allowed: bool) -> None:
    assert bool(refusal(guard(**settings), host)) is not is_allowed


def test_a_denied_host_that_cannot_be_read_closes_every_door() -> None:
    assert "'https://evil.example/'" in refusal(
        guard(https_allow_all="true", https_deny_hosts="https://evil.example/"), "example.org"
    )


def test_without_lists_the_refusal_says_what_to_set() -> None:
    assert "MCPGREEN_HTTPS_ALLOW_HOSTS" in refusal(guard(), "example.org")


def test_an_exempt_address_passes_and_its_neighbours_do_not() -> None:
    opened = guard(https_allow_all="true", net_allow_addresses="127.0.0.1, fd00:0::1")

    assert refusal(opened, "127.0.0.1") == refusal(opened, "fd00::1") == ""
    for other in ("127.0.0.2", "::ffff:127.0.0.1", "fd00::2", "64:ff9b::7f00:1"):
        assert refusal(opened, other)


def test_an_exemption_does_not_replace_the_list_of_hosts() -> None:
    assert "not allowed" in refusal(guard(net_allow_addresses="127.0.0.1"), "127.0.0.1")


def test_exemptions_that_cannot_be_read_are_noted_and_exempt_nothing() -> None:
    settings = load({}, {"MCPGREEN_NET_ALLOW_ADDRESSES": "127.0.0.1 10.0.0.0/8"}, {})

    assert settings.net_allow_addresses == ()
    assert "is not a list of IP addresses" in settings.notes[0]


def test_a_name_that_leads_to_this_machine_is_refused_without_naming_the_address() -> None:
    with pytest.raises(ProviderFailure) as caught:
        guard(https_allow_hosts="localhost").addresses("localhost", 443, within_secs=60)

    assert caught.value.status == REFUSED
    assert "loopback" in caught.value.text
    assert "127.0.0.1" not in caught.value.text


def test_one_address_that_is_not_public_spoils_all_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", (address, 443)) for address in ("93.184.215.14", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    with pytest.raises(ProviderFailure) as caught:
        guard(https_allow_hosts="example.org").addresses("example.org", 443, within_secs=60)

    assert caught.value.status == REFUSED


def test_both_providers_have_settings_of_their_own() -> None:
    settings: Any = load({}, {"MCPBASH_GIT_ALLOW_HOSTS": "git.example", "MCPBASH_HTTPS_ALLOW_HOSTS": "web.example"}, {})

    assert refusal(Guard("git", settings), "git.example") == ""
    assert refusal(Guard("git", settings), "web.example")
