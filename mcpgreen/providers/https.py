"""`https://`: send one GET to an address that the guard has checked, with limits on size and time.

No redirects (the client decides whether to follow), no proxies (they would resolve the name again), no cookies, no
credentials. Memory stays constant for any response.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NoReturn
from urllib.parse import urljoin

from mcpgreen import __version__
from mcpgreen.providers.exits import FETCH_FAILED, REDIRECT, REDIRECT_PREFIX, TOO_LARGE, ProviderFailure, refusal
from mcpgreen.providers.netguard import Guard, Url, read_url
from mcpgreen.settings.settings import Settings

CHUNK_BYTES = 64 * 1024
DEFAULT_PORTS = {"https": 443}


def provide(uri: str, settings: Settings, out: BinaryIO) -> None:
    url = read_url(uri, DEFAULT_PORTS)
    timeout_secs = settings.https_timeout_secs
    with time_limit(timeout_secs):
        addresses = Guard("https", settings).addresses(url.host, url.port, within_secs=timeout_secs)
        out.writelines(content(url, addresses, settings))


def content(url: Url, addresses: tuple[str, ...], settings: Settings) -> Iterator[bytes]:
    with network_errors(url.host), connect(url, addresses, settings.https_timeout_secs) as connected:
        agent = "".join(each for each in settings.https_user_agent if " " <= each <= "~").strip()
        response = send_request(connected, url, agent or f"mcpgreen/{__version__}")
        yield from read_body(response, max_bytes=settings.https_max_bytes)


@contextmanager
def network_errors(host: str) -> Iterator[None]:
    """Turn exceptions of the network into failures with a sentence."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise _failure(f"The certificate of {host} is not valid: {error.verify_message}.") from None
    except ssl.SSLError as error:
        raise _failure(f"No secure connection to {host}: {error.reason or 'the connection was closed'}.") from None
    except OSError as error:
        raise _failure(f"Host {host} cannot be reached: {error.strerror or 'timed out'}.") from None
    except http.client.HTTPException:
        raise _failure(f"Host {host} sent invalid HTTP, or closed the connection.") from None


@contextmanager
def time_limit(secs: float) -> Iterator[None]:
    """Fail after this time, even if the server sends a byte now and then."""

    def give_up(*_: object) -> NoReturn:
        raise _failure(f"Timed out after {secs:g} seconds.")

    previous = signal.signal(signal.SIGALRM, give_up)
    # Repeated, because Python swallows an exception that is raised inside a destructor.
    signal.setitimer(signal.ITIMER_REAL, secs, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def connect(url: Url, addresses: tuple[str, ...], timeout_secs: float) -> ssl.SSLSocket:
    """Connect to the first address that answers. The certificate must be for the host in the URL."""
    context = tls_context()
    problem = OSError("no address")
    for address in addresses:
        try:
            connected = socket.create_connection((address, url.port), timeout=timeout_secs)
        except OSError as error:
            problem = error
        else:
            # A response without a length must end with a TLS closure alert, or it was cut off.
            return context.wrap_socket(connected, server_hostname=url.host, suppress_ragged_eofs=False)
    raise problem


def tls_context() -> ssl.SSLContext:
    """Trust the certificates of the system, SSL_CERT_FILE and SSL_CERT_DIR, or the ones in CURL_CA_BUNDLE."""
    bundle = os.environ.get("CURL_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=bundle or None)
    except (OSError, ssl.SSLError):
        raise refusal("CURL_CA_BUNDLE does not name a readable certificate file.") from None
    # Some versions of Python treat a connection that was cut off like one that was closed.
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.set_alpn_protocols(["http/1.1"])
    return context


def send_request(connected: ssl.SSLSocket, url: Url, agent: str) -> http.client.HTTPResponse:
    """Request the resource. Return a response with content, and raise ProviderFailure for any other."""
    connection = http.client.HTTPSConnection(url.host, url.port, context=connected.context)
    connection.sock = connected
    headers = {"User-Agent": agent, "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
    connection.request("GET", url.target, headers=headers)
    response = connection.getresponse()
    location = response.getheader("Location")
    if 300 <= response.status < 400 and location:
        place = urljoin(f"https://{url.authority}{url.target}", location)
        raise ProviderFailure(REDIRECT, REDIRECT_PREFIX + "".join(filter(str.isprintable, place)))
    if not 200 <= response.status < 300:
        raise _failure(f"HTTP error: {response.status}")
    return response


def read_body(response: http.client.HTTPResponse, *, max_bytes: int) -> Iterator[bytes]:
    too_large = ProviderFailure(TOO_LARGE, f"The resource is larger than {max_bytes} bytes.")
    announced = response.length
    if announced is not None and announced > max_bytes:
        raise too_large
    total = 0
    while chunk := response.read(CHUNK_BYTES):
        total += len(chunk)
        if total > max_bytes:
            raise too_large
        yield chunk
    if announced is not None and total < announced:
        raise _failure(f"Only {total} of {announced} bytes arrived.")


def _failure(text: str) -> ProviderFailure:
    return ProviderFailure(FETCH_FAILED, text)
