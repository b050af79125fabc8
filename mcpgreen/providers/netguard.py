"""Parse URLs strictly, and decide which hosts a provider may connect to.

A URL that two programs could read in different ways is refused. So is a host that the lists of the settings do not
allow, or one that has an address that is not public.

A client chooses the URIs, so without a guard it could read what only this machine can reach: services on loopback,
the intranet, the metadata of a cloud. The guard checks the name first, then every address of the name.

Rules: connect to an address from `Guard.addresses` and do not resolve the name again, because the second answer could
be another. When in doubt, refuse.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from mcpgreen.providers.exits import FETCH_FAILED, ProviderFailure, refusal
from mcpgreen.settings.settings import Settings

MAX_HOST_CHARS = 253
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
# A part of an IPv4 address, as system libraries read it. No name in the DNS ends like this.
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
NEVER_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
KEPT_IN_A_TARGET = "%/:?[]@!$&'()*+,;=~"

# IPv4 addresses are public except for these. IPv6 addresses are public only in 2000::/3, except for these. The first
# row that contains an address names its kind.
NOT_PUBLIC = {
    "an unspecified": "0.0.0.0/8 ::/128",
    "a private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    "a carrier's private": "100.64.0.0/10",
    "a loopback": "127.0.0.0/8 ::1/128",
    "a link-local": "169.254.0.0/16 fe80::/10",
    "a documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    "a benchmarking": "198.18.0.0/15",
    "a multicast": "224.0.0.0/4 ff00::/8",
    "a 6to4": "192.88.99.0/24 2002::/16",
    "a mapped IPv4": "::ffff:0:0/96",
    "a NAT64": "64:ff9b::/96 64:ff9b:1::/48",
    "a Teredo": "2001::/32",
    "a reserved": "192.0.0.0/24 240.0.0.0/4 2001::/23",
}
PUBLIC_V6 = ip_network("2000::/3")
_NETWORKS = [(ip_network(network), kind) for kind, networks in NOT_PUBLIC.items() for network in networks.split()]


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
        raise refusal("The host or port of the URI is not valid.") from None
    if "@" in parts.netloc:
        raise refusal("The URI must not contain a user name or a password.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Url(
        scheme.lower(),
        canonical_host(_bare_host(parts.netloc)),
        default_ports[scheme.lower()] if port is None else port,
        quote(target, safe=KEPT_IN_A_TARGET),
        parts.fragment,
    )


def canonical_host(host: str) -> str:
    """Return the spelling of a host that is compared, resolved and connected to: lower case, ASCII, no final dot.

    Raises ProviderFailure for an invalid host, and for an unusual spelling of an address (`127.1`, `0x7f000001`,
    `010.0.0.1`), which some libraries read as an address, others as a name or as another address.
    """
    if ":" in host:
        if "%" in host:
            raise refusal("An IPv6 address must not name a network interface.")
        return _address(host, IPv6Address, "is not an IPv6 address.")
    if not host or len(host) > MAX_HOST_CHARS:
        raise refusal("The URI has no host, or its host is too long.")
    try:
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise refusal(f"{host!r} is not a host name.") from None
    labels = name.split(".")
    if NUMBER.fullmatch(labels[-1]):
        return _address(name, IPv4Address, "is not an IPv4 address of four decimal numbers.")
    if not all(LABEL.fullmatch(label) for label in labels):
        raise refusal(f"{host!r} is not a host name.")
    return name


def _bare_host(netloc: str) -> str:
    """Return the host as it is written. `urlsplit(...).hostname` would drop the text after a bracket."""
    if netloc.startswith("["):
        host, bracket, rest = netloc[1:].partition("]")
        if not bracket or not re.fullmatch(r"(:[0-9]*)?", rest) or ":" not in host:
            raise refusal("The host or port of the URI is not valid.")
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


class Guard:
    """Checks hosts by the settings of one provider, which begin with `kind`."""

    def __init__(self, kind: str, settings: Settings) -> None:
        self._prefix = f"MCPGREEN_{kind.upper()}"
        self._allowed_hosts: tuple[str, ...] = getattr(settings, f"{kind}_allow_hosts")
        self._denied_hosts: tuple[str, ...] = getattr(settings, f"{kind}_deny_hosts")
        self._exempt = frozenset(map(ip_address, settings.net_allow_addresses))

    def require_allowed(self, host: str) -> None:
        """Check a canonical host by the lists, and if it is an address, also by that. Resolves nothing."""
        prefix = self._prefix
        for entry in self._denied_hosts:
            denied = _host_in(entry)
            if not denied:  # refuse every host, so that a typo cannot allow one
                raise refusal(f"{prefix}_DENY_HOSTS names {entry!r}, which is not a host; correct it.")
            if host == denied:
                raise refusal(f"Host {host} is denied by {prefix}_DENY_HOSTS.")
        if "*" not in self._allowed_hosts:
            if not self._allowed_hosts:
                remedy = f"list hosts in {prefix}_ALLOW_HOSTS; * allows all"
                raise refusal(f"Host {host} is not allowed, because the list of allowed hosts is empty: {remedy}.")
            if host not in map(_host_in, self._allowed_hosts):
                raise refusal(f"Host {host} is not allowed; to allow it, add it to {prefix}_ALLOW_HOSTS.")
        if address := _address_in(host):
            self._require_public(host, address)

    def addresses(self, host: str, port: int, *, within_secs: float) -> tuple[str, ...]:
        """Resolve a host that the lists allow, best address first. Refuse it if one of its addresses is not public."""
        self.require_allowed(host)
        if _address_in(host) is not None:
            return (host,)
        found = tuple(dict.fromkeys(_resolved(host, port, within_secs)))
        for text in found:
            self._require_public(host, ip_address(text))
        return found

    def _require_public(self, host: str, address: IPv4Address | IPv6Address) -> None:
        kind = why_not_public(address)
        if kind and address not in self._exempt:
            # The message does not name the address, so that clients learn nothing about the intranet.
            remedy = "to allow it, add it to MCPGREEN_NET_ALLOW_ADDRESSES"
            raise refusal(f"Host {host} is not allowed, because it has {kind} address; {remedy}.")


def why_not_public(address: IPv4Address | IPv6Address) -> str:
    """Return the kind of an address that is not public, with its article; empty for a public address."""
    is_foreign = address.version == 6 and address not in PUBLIC_V6
    return next((kind for network, kind in _NETWORKS if address in network), "a reserved" if is_foreign else "")


def _host_in(entry: str) -> str:
    try:
        return canonical_host(entry)
    except ProviderFailure:
        return ""  # not a host, so it matches none


def _address_in(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _resolved(host: str, port: int, within_secs: float) -> list[str]:
    found: list[str] = []

    def look_up() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(str(address[0]).partition("%")[0] for *_, address in answers)

    # In a thread, because the lookup has no time limit and cannot be interrupted by a signal.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(within_secs)
    if not found:
        reason = "was not resolved in time" if thread.is_alive() else "cannot be resolved"
        raise ProviderFailure(FETCH_FAILED, f"Host {host} {reason}.")
    return found
