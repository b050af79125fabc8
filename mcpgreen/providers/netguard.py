"""Decide which hosts a provider may connect to: the lists of the settings, and only public addresses.

A client chooses the URIs, so without a guard it could read what only this machine can reach: services on loopback,
the intranet, the metadata of a cloud. The guard checks the name first, then every address of the name.

Rules: connect to an address from `Guard.addresses` and do not resolve the name again, because the second answer could
be another. When in doubt, refuse.
"""

from __future__ import annotations

import socket
import threading
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from mcpgreen.providers.exits import FETCH_FAILED, ProviderFailure, refusal
from mcpgreen.providers.urls import canonical_host
from mcpgreen.settings.settings import Settings

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


class Guard:
    """Checks hosts by the settings of one provider, which begin with `kind`."""

    def __init__(self, kind: str, settings: Settings) -> None:
        self._prefix = f"MCPGREEN_{kind.upper()}"
        self._allowed_hosts, self._denied_hosts = {
            "https": (settings.https_allow_hosts, settings.https_deny_hosts),
            "git": (settings.git_allow_hosts, settings.git_deny_hosts),
        }[kind]
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
                remedy = f"name hosts in {prefix}_ALLOW_HOSTS; * allows all"
                raise refusal(f"Host {host} is not allowed, because no host is: {remedy}.")
            if host not in map(_host_in, self._allowed_hosts):
                raise refusal(f"Host {host} is not allowed; {prefix}_ALLOW_HOSTS does not name it.")
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
            remedy = "MCPGREEN_NET_ALLOW_ADDRESSES can exempt it"
            raise refusal(f"Host {host} is not allowed, because it has {kind} address; {remedy}.")


def why_not_public(address: IPv4Address | IPv6Address) -> str:
    """The kind of an address that is not public, with its article; empty for a public address."""
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
        reason = "did not get resolved in time" if thread.is_alive() else "cannot be resolved"
        raise ProviderFailure(FETCH_FAILED, f"Host {host} {reason}.")
    return found
