"""The built-in providers: the schemes that each serves, and whether it uses the network.

Each is a function `provide(uri, settings, out)`, which writes to `out` or raises ProviderFailure. A provider that uses
the network is a module of `mcpgreen.providers`, and runs as a process. The others are in `providers.local` and run in
the server, so they must not block.
"""

from __future__ import annotations

from typing import NamedTuple


class Provider(NamedTuple):
    schemes: tuple[str, ...]
    uses_network: bool = False


PROVIDERS = {
    "echo": Provider(("echo",)),
    "file": Provider(("file",)),
    "git": Provider(("git", "git+https"), uses_network=True),
    "https": Provider(("https",), uses_network=True),
    "ui": Provider(("ui",)),
}
PROVIDER_OF_SCHEME = {scheme: name for name, provider in PROVIDERS.items() for scheme in provider.schemes}
NETWORK_PROVIDERS = frozenset(name for name, provider in PROVIDERS.items() if provider.uses_network)
