"""Parse URLs strictly: refuse a URL that two programs could read in different ways.

`netguard` decides whether a provider may connect to the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from mcpgreen.providers.exits import refusal

MAX_HOST_CHARS = 253
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# A part of an IPv4 address, as system libraries read it. No name in the DNS ends like this.
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
NEVER_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
KEPT_IN_A_TARGET = "%/:?[]@!$&'()*+,;=~"


class Url(NamedTuple):
    """A URL without a user and without ambiguities. `host` is canonical, `target` is path and query."""

    scheme: str
    host: str
    port: int
    target: str
    fragment: str

    @property
    def authority(self) -> str:
        """Host and port in the syntax of a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_url(uri: str, default_ports: Mapping[str, int]) -> Url:
    """Parse a URL with one of the schemes in `default_ports`. Raises ProviderFailure."""
    schemes = " or ".join(f"{scheme}://" for scheme in default_ports)
    if NEVER_IN_A_URL.search(uri):
        raise refusal("The URI has spaces, control characters or backslashes; percent-encode them.")
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme.lower() not in default_ports:
        raise refusal(f"The URI must begin with {schemes}.")
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        raise refusal("Host or port of the URI cannot be read.") from None
    if "@" in parts.netloc:
        raise refusal("The URI must not name a user or a password.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(
        scheme.lower(),
        canonical_host(_bare_host(parts.netloc)),
        default_ports[scheme.lower()] if port is None else port,
        quote(target, safe=KEPT_IN_A_TARGET),
        parts.fragment,
    )


def canonical_host(host: str) -> str:
    """The spelling of a host that is compared, resolved and connected to: lower case, ASCII, no final dot.

    Raises ProviderFailure for an invalid host, and for an unusual spelling of an address (`127.1`, `0x7f000001`,
    `010.0.0.1`), which some libraries read as an address, others as a name or as another address.
    """
    if ":" in host:
        if "%" in host:
            raise refusal("An IPv6 address must not name a network interface.")
        return _address(host, IPv6Address, "is not an IPv6 address.")
    if not host or len(host) > MAX_HOST_CHARS:
        raise refusal("The URI has no host, or one that is too long.")
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise refusal(f"{host!r} is not a host name.") from None
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        return _address(name, IPv4Address, "is not a usual IPv4 address: four decimal numbers.")
    if not all(LABEL.fullmatch(label) for label in labels):
        raise refusal(f"{host!r} is not a host name.")
    return name


def _bare_host(netloc: str) -> str:
    """The host as it is written. `urlsplit(...).hostname` would drop the text after a bracket."""
    if netloc.startswith("["):
        host, bracket, rest = netloc[1:].partition("]")
        if not bracket or not re.fullmatch(r"(:[0-9]*)?", rest) or ":" not in host:
            raise refusal("Host or port of the URI cannot be read.")
        return host
    host, _, port = netloc.partition(":")
    if not re.fullmatch(r"[0-9]*", port):
        raise refusal("Write an IPv6 address in a URI in brackets: https://[2001:db8::1]/.")
    return host


def _address(host: str, kind: type[IPv4Address | IPv6Address], fault: str) -> str:
    try:
        return str(kind(host))
    except AddressValueError:
        raise refusal(f"{host!r} {fault}") from None
