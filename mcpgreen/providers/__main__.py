"""`python -m mcpgreen.providers NAME URI`: run one provider as a program. `exits` lists its exit statuses.

A provider that uses the network reads untrusted data, so its memory is limited, and so is the memory of its children.
Settings come from the environment. Only a provider that has something to clean up handles signals.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from mcpgreen.catalog.schemes import NETWORK_PROVIDERS, PROVIDERS
from mcpgreen.providers.exits import FETCH_FAILED, MEMORY_MB, OK, REFUSED, TOO_LARGE, ProviderFailure
from mcpgreen.settings.settings import load


def main(arguments: Sequence[str]) -> int:
    """Run the provider that the arguments name, and return the exit status."""
    sys.excepthook = _print_one_line
    if len(arguments) != 2 or arguments[0] not in PROVIDERS:
        return _failed(REFUSED, f"usage: python -m mcpgreen.providers {'|'.join(PROVIDERS)} URI")
    name, uri = arguments
    try:
        uri.encode("utf-8")
    except UnicodeEncodeError:
        return _failed(REFUSED, "The URI is not UTF-8.")
    settings = load({}, os.environ, {})
    if name in NETWORK_PROVIDERS:
        _limit_memory(MEMORY_MB)
        provide = importlib.import_module(f"mcpgreen.providers.{name}").provide
    else:
        from mcpgreen.providers.local import PROVIDE

        provide = PROVIDE[name]
    try:
        with open(1, "wb", closefd=False) as out:
            provide(uri, settings, out)
    except ProviderFailure as failure:
        return _failed(failure.status, failure.text)
    except MemoryError:
        return _failed(TOO_LARGE, f"Reading this takes more than {MEMORY_MB} MB of memory.")
    except OSError as error:
        return _failed(FETCH_FAILED, f"The {name} provider failed: {error.strerror or type(error).__name__}.")
    except KeyboardInterrupt:
        return 130
    return OK


def _limit_memory(megabytes: int) -> None:
    """Limit this process and its children. RLIMIT_DATA does not count libraries and mapped files."""
    import resource

    limit_bytes = megabytes << 20
    with suppress(OSError, ValueError):  # the system has no such limit
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        if most != resource.RLIM_INFINITY:
            limit_bytes = min(limit_bytes, most)
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def _failed(status: int, text: str) -> int:
    print(text, file=sys.stderr)
    return status


def _print_one_line(kind: type[BaseException], *_: object) -> None:
    """Report an unexpected exception without a traceback, because a client may read it and see our paths."""
    print(f"The provider failed unexpectedly: {kind.__name__}.", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
