"""URLs are read strictly, and a host has one spelling."""

from __future__ import annotations

import pytest

from mcpgreen.providers.exits import REFUSED, ProviderFailure
from mcpgreen.providers.netguard import canonical_host, read_url

PORTS = {"https": 443}


@pytest.mark.parametrize(
    ("uri", "host", "port", "target", "fragment"),
    [
        ("https://example.org", "example.org", 443, "/", ""),
        ("HTTPS://Example.ORG./a?b=c#d", "example.org", 443, "/a?b=c", "d"),
        ("https://example.org:8443?q", "example.org", 8443, "/?q", ""),
        ("https://example.org:/x", "example.org", 443, "/x", ""),
        ("https://bücher.example/ä%20b", "xn--bcher-kva.example", 443, "/%C3%A4%20b", ""),
        ("https://93.184.215.14/", "93.184.215.14", 443, "/", ""),
        ("https://[2606:2800:0220::1]:444/", "2606:2800:220::1", 444, "/", ""),
        ("https://example.org/@user:x", "example.org", 443, "/@user:x", ""),
    ],
)
def test_a_url_is_taken_apart(uri: str, host: str, port: int, target: str, fragment: str) -> None:
    assert read_url(uri, PORTS) == ("https", host, port, target, fragment)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "example.org",
        "http://example.org/",
        "ftp://example.org/",
        "https:example.org",
        "https:/example.org",
        "https://",
        "https:///path",
        "https://user@example.org/",
        "https://user:secret@example.org/",
        "https://example.org@127.0.0.1/",
        "https://@example.org/",
        "https://example.org:port/",
        "https://example.org:99999/",
        "https://example.org:-1/",
        "https://example.org:80:80/",
        "https://example.org\\@127.0.0.1/",
        "https://example.org/a b",
        "https://example.org/a\nHost: evil",
        "https://exam\tple.org/",
        " https://example.org/",
        "https://example.org/\x00",
        "https://example.org\x7f/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[::1]x:80/",
        "https://[example.org]/",
        "https://[v1.x]/",
        "https://[fe80::1%25eth0]/",
        "https://::1/",
        "https://2001:db8::1/",
        "https://exam ple.org/",
        "https://example..org/",
        "https://.example.org/",
        "https://-example.org/",
        "https://exa%6dple.org/",
        "https://exam$ple.org/",
        f"https://{'a' * 64}.org/",
        f"https://{'a.' * 200}org/",
        "https://a\u2100b.org/",
    ],
)
def test_what_is_no_clear_url_is_refused(uri: str) -> None:
    with pytest.raises(ProviderFailure) as caught:
        read_url(uri, PORTS)

    assert caught.value.status == REFUSED
    assert caught.value.text.endswith(".")


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "127.1",
        "127.0.1",
        "127.0.0.1.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.01",
        "00127.0.0.1",
        "017700000001",
        "256.0.0.1",
        "1.2.3.",
        "example.0x",
        "example.org.1",
        "0",
        "4294967297",
        "１２７.１",  # noqa: RUF001
        "127。0。1",
        "1②7.0.0.01",
        "::ffff:127.0.0.01",
        "::1%lo",
        ":::",
        "1:2",
    ],
)
def test_an_address_in_disguise_is_refused(host: str) -> None:
    with pytest.raises(ProviderFailure):
        canonical_host(host)


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("１２７.0.0.1", "127.0.0.1"),  # noqa: RUF001
        ("127。0。0。1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("LOCALHOST", "localhost"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("my_host.example", "my_host.example"),
        ("3com.example", "3com.example"),
    ],
)
def test_spellings_of_one_host_become_one(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical
