"""Where the ledger is: the URL of a Redis, a client for it that never blocks the hub, and the same URL for Celery.

Rule: a password never stands on a command line, which other users of the machine can read.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.tasks.store import StoreUnusable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

SCHEMES = ("redis", "rediss", "unix")
NEEDS_EXTRA = "a fleet needs more packages: pip install 'mcpgreen[fleet]'"
ANSWER_SECS = 10.0  # for Redis to answer a command
VARIABLE = "MCPGREEN_FLEET_URL"


class FleetUnusable(McpgreenError):
    """There is no fleet at this address, or this machine cannot be part of it. The message says why."""


def url_of(given: str) -> str:
    """Return the URL that a setting names: itself, or the first line of the file after an @. Raises UsageError."""
    url = given
    if given.startswith("@"):
        try:
            with open(given[1:], encoding="utf-8") as file:
                url = file.readline().strip()
        except OSError as error:
            raise UsageError(f"{given[1:]}: {error.strerror}") from error
    if urlsplit(url).scheme not in SCHEMES:
        raise UsageError("The fleet's URL must be redis://HOST/DB, rediss://HOST/DB for TLS, or unix:///PATH.")
    return url


def require_public(given: str) -> str:
    """Return the URL of an option. Raises UsageError if it has a password."""
    if not given.startswith("@") and (urlsplit(given).password or "password=" in given):
        raise UsageError(f"Others can read a password on a command line; set {VARIABLE}, or name a file: --fleet @FILE")
    return given


def client_of(url: str) -> Redis:
    """Return a client whose sockets are gevent's. Raises FleetUnusable if the packages are missing."""
    if not all(map(find_spec, ("redis", "celery"))):
        raise FleetUnusable(NEEDS_EXTRA)
    import redis.connection
    from gevent import socket, ssl
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # The library opens its sockets by these names. No other module of ours uses it, so nothing else is changed.
    vars(redis.connection).update(socket=socket, ssl=ssl)
    return redis.Redis.from_url(
        url,
        protocol=2,
        socket_timeout=ANSWER_SECS,
        socket_connect_timeout=ANSWER_SECS,
        retry=Retry(NoBackoff(), 0),
        max_connections=10_000,
    )


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of Redis into ours. Clients may read the message, so it does not say where Redis is."""
    from redis.exceptions import RedisError, ResponseError

    try:
        yield
    except (RedisError, OSError) as error:
        unusable = StoreUnusable(f"The fleet's Redis cannot be used: {type(error).__name__}")
        unusable.is_away = not isinstance(error, ResponseError)
        raise unusable from error


def broker_of(url: str) -> str:
    """Return the same place as Celery writes it."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    if parts.scheme == "unix":
        database, password = options.get("db", "0"), options.get("password", "")
        user = f"{parts.username or ''}:{password}@" if password else ""
        return f"redis+socket://{user}{parts.path}?virtual_host={database}"
    if parts.scheme == "rediss":
        options.setdefault("ssl_cert_reqs", "required")
    return parts._replace(query=urlencode(options)).geturl()
