"""`python -m mcpgreen.providers NAME URI`: one provider, as a program; how it ends is told in `exits`.

A provider that uses the network reads what strangers send, so it has a limit of memory, and so has what it starts.

Settings come from the environment. A provider with something to clean up takes care of signals itself; the others just
end.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from mcpgreen.catalog.schemes import NETWORK_PROVIDERS, PROVIDERS
from mcpgreen.providers.exits import FETCH_FAILED, OK, REFUSED, TOO_LARGE, ProviderFailure
from mcpgreen.settings.table import load


def main(arguments: Sequence[str]) -> int:
    """Run the provider that the arguments name. The exit status."""
    sys.excepthook = _in_one_line
    if len(arguments) != 2 or arguments[0] not in PROVIDERS:
        return _failed(REFUSED, f"usage: python -m mcpgreen.providers {'|'.join(PROVIDERS)} URI")
    name, uri = arguments
    try:
        uri.encode("utf-8")
    except UnicodeEncodeError:
        return _failed(REFUSED, "The URI is not UTF-8.")
    settings = load({}, os.environ, {})
    if name in NETWORK_PROVIDERS:
        _limit_memory(settings.provider_memory_mb)
    provider = importlib.import_module(f"mcpgreen.providers.{name}")
    try:
        with open(1, "wb", closefd=False) as out:
            provider.provide(uri, settings, out)
    except ProviderFailure as failure:
        return _failed(failure.status, failure.text)
    except MemoryError:
        return _failed(TOO_LARGE, "Reading this takes more memory than provider_memory_mb allows.")
    except OSError as error:
        return _failed(FETCH_FAILED, f"The {name} provider failed: {error.strerror or type(error).__name__}.")
    except KeyboardInterrupt:
        return 130
    return OK


def _limit_memory(megabytes: int) -> None:
    """For us and whatever we start. Data, not addresses: libraries and mapped files would count with those."""
    import resource

    limit_bytes = megabytes << 20
    with suppress(OSError, ValueError):  # a system that knows no such limit
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most != resource.RLIM_INFINITY:
            limit_bytes = min(limit_bytes, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def _failed(status: int, text: str) -> int:
    print(text, file=sys.stderr)
    return status


def _in_one_line(kind: type[BaseException], *_: object) -> None:
    """For what nobody foresaw: a client may read this, and a traceback would name our files."""
    print(f"The provider failed unexpectedly: {kind.__name__}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
