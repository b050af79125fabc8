"""Providers' exit statuses, and the errors that a client gets for them.

Every provider, ours or a project's script, keeps one convention: the URI is its only argument, the content goes to
stdout, the reason for a failure to stderr, and the exit status says which kind of failure it is. After a redirect the
first line on stderr is `REDIRECT_PREFIX` and the new URL.
"""

from __future__ import annotations

from mcpgreen.errors import InternalError, InvalidParams, McpgreenError, OutputTooLarge, ResourceNotFound, RpcError

OK = 0
OUTSIDE_ROOTS = 2
NOT_FOUND = 3
REFUSED = 4  # the URI is invalid, or the settings do not allow it
FETCH_FAILED = 5
TOO_LARGE = 6
REDIRECT = 7

REDIRECT_PREFIX = "redirect:"
MEMORY_MB = 256  # for a provider that uses the network, and for each program that it starts
ERRORS: dict[int, tuple[type[RpcError], str]] = {
    REFUSED: (InvalidParams, "Invalid resource specification"),
    FETCH_FAILED: (InternalError, "Resource fetch failed"),
    TOO_LARGE: (OutputTooLarge, "Resource exceeded size limit"),
}


class ProviderFailure(McpgreenError):
    """A provider fails: it prints the text on stderr and ends with this exit status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def refusal(text: str) -> ProviderFailure:
    return ProviderFailure(REFUSED, text)


def rpc_error(status: int, text: str, uri: str) -> RpcError:
    """Return the error for the client when a provider for `uri` failed with this status and this text on stderr."""
    if status == OUTSIDE_ROOTS:
        return InternalError("Resource outside allowed roots")
    if status == NOT_FOUND:
        return ResourceNotFound(uri)
    kind, without_text = ERRORS.get(status, (InternalError, "Resource provider failed"))
    return kind(text.strip() or without_text)
