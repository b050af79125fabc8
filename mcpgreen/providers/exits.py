"""How a provider ends: its exit status, its reason, and what the client is told.

Every provider, ours or a project's script, keeps one convention: the URI is its only argument, the content goes to
stdout, the reason for a failure to stderr, and the exit status says which kind of failure it is. After a redirect the
first line on stderr names the new place, behind `REDIRECT_PREFIX`.
"""

from __future__ import annotations

from mcpgreen.errors import InternalError, InvalidParams, McpgreenError, OutputTooLarge, ResourceNotFound, RpcError

OK = 0
OUTSIDE_ROOTS = 2
NOT_FOUND = 3
REFUSED = 4  # a URI that makes no sense, or that the settings do not allow
FETCH_FAILED = 5
TOO_LARGE = 6
REDIRECT = 7

REDIRECT_PREFIX = "redirect:"
ERRORS: dict[int, tuple[type[RpcError], str]] = {
    REFUSED: (InvalidParams, "Invalid resource specification"),
    FETCH_FAILED: (InternalError, "Resource fetch failed"),
    TOO_LARGE: (OutputTooLarge, "Resource exceeded size limit"),
}


class ProviderFailure(McpgreenError):
    """A provider gives up: text on stderr, and this exit status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def refusal(text: str) -> ProviderFailure:
    return ProviderFailure(REFUSED, text)


def rpc_error(status: int, text: str, uri: str) -> RpcError:
    """What the client hears when a provider for `uri` ended with this status, not 0, and this text on stderr."""
    if status == OUTSIDE_ROOTS:
        return InternalError("Resource outside allowed roots")
    if status == NOT_FOUND:
        return ResourceNotFound(uri)
    kind, without_text = ERRORS.get(status, (InternalError, "Resource provider failed"))
    return kind(text.strip() or without_text)
