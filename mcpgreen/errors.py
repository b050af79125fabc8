"""Everything that can go wrong, as one small tree.

The parent class decides what becomes of an exception: an `RpcError` turns into a JSON-RPC error object, a
`ToolFailure` into a result that the model can read. (A cancelled call is unwound by gevent's own `GreenletExit`, which
is no Exception, and becomes nothing at all.) No behaviour lives here; `protocol.revision_fields.error_object` is the
only place that builds the object on the wire.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ERROR_CODES = range(-(1 << 31), 1 << 31)  # those that every client can hold


class McpgreenError(Exception):
    """The root of all errors that we raise on purpose."""


class RpcError(McpgreenError):
    """A request that cannot be served; becomes a JSON-RPC error object."""

    code = -32603
    stateless_code: int | None = None  # where the stateless era has another one for it
    summary = "Internal error"

    def __init_subclass__(cls, *, code: int = 0, stateless_code: int = 0, summary: str = "") -> None:
        cls.code = code or cls.code
        cls.stateless_code = stateless_code or cls.stateless_code
        cls.summary = summary or cls.summary

    def __init__(self, message: str | None = None, *, data: Any = None) -> None:
        super().__init__(message or self.summary)
        self.message = message or self.summary
        self.data = data


class ParseError(RpcError, code=-32700, summary="Parse error"):
    """The line is not JSON."""


class InvalidRequest(RpcError, code=-32600, summary="Invalid Request"):
    """JSON, but not a JSON-RPC request."""


class MethodNotFound(RpcError, code=-32601, summary="Method not found"):
    """No such method in the client's revision, or its capability is not offered."""


class InvalidParams(RpcError, code=-32602, summary="Invalid params"):
    """The parameters are wrong: unknown name, wrong type, stale cursor."""


class ResourceNotFound(RpcError, code=-32002, stateless_code=-32602, summary="Resource not found"):
    """No resource has this URI."""

    def __init__(self, uri: str) -> None:
        super().__init__(data={"uri": uri})


class Denied(InvalidParams):
    """Allow-list, path check or the project's policy said no."""


class InsufficientScope(RpcError, code=-32600, summary="Insufficient scope"):
    """The caller is known, but may not use this: its token lacks scopes.

    -32600, as for any request that cannot be served from this caller as it is: no other parameters would help, which
    -32602 would make a model try, but another token would. A transport that knows of tokens says so in its own words:
    over HTTP, 403 and a challenge with `required`. `data` has both lists for whoever sees nothing but the message.
    """

    def __init__(self, missing: Sequence[str], *, required: Sequence[str]) -> None:
        super().__init__(
            f"This needs the scope {' '.join(missing)}, which the caller does not have.",
            data={"requiredScopes": list(required), "missingScopes": list(missing)},
        )
        self.missing = tuple(missing)
        self.required = tuple(required)


class InternalError(RpcError):
    """A bug in the server, or a problem of the machine."""


class OutputTooLarge(InternalError):
    """A script or a response went over its byte limit."""


class NotInitialized(RpcError, code=-32000, summary="Server not initialized"):
    """Handshake era only: a request before `notifications/initialized`."""

    remedy = (
        "Send initialize and then notifications/initialized; or, as a stateless client, "
        "io.modelcontextprotocol/protocolVersion and clientCapabilities in params._meta."
    )


class ShuttingDown(RpcError, code=-32003, summary="Server shutting down"):
    """Handshake era only: a request after `shutdown`."""


class ShutdownNotRequested(RpcError, code=-32005, summary="Shutdown not requested"):
    """Handshake era only: `exit` as a request before `shutdown`."""


class MissingClientCapability(RpcError, stateless_code=-32021, summary="Missing client capability"):
    """The call needs to ask something that this client did not declare that it can answer."""


class HeaderMismatch(RpcError, code=-32020, summary="Header mismatch"):
    """Stateless era, over HTTP: a header is missing, or says something else than the body."""


class UnsupportedVersion(RpcError, code=-32022, summary="Unsupported protocol version"):
    """Stateless era: the envelope names a revision that is not served there."""


class ScriptError(RpcError):
    """A script chose code, message and data itself (`mcp_fail`, or `mcp_tools_error` in policy.sh)."""

    def __init__(self, code: int, message: str, *, data: Any = None) -> None:
        super().__init__(message, data=data)
        self.code = code


class ToolFailure(McpgreenError):
    """The tool ran, or was refused its arguments; becomes a result with `isError` that the model can act on.

    `meta` and `structured` go into the result as `_meta` and `structuredContent`; `more_text`, strings or a
    LargeText, become further blocks. `problems` end the text; they repeat values, so a log has `what` without them.
    """

    def __init__(
        self,
        text: str,
        *,
        meta: dict[str, Any] | None = None,
        structured: dict[str, Any] | None = None,
        more_text: tuple[Any, ...] = (),
        problems: Sequence[str] = (),
    ) -> None:
        self.what = text
        self.problems = problems
        self.text = f"{text}: {'; '.join(problems)}" if problems else text
        super().__init__(self.text)
        self.meta = meta
        self.structured = structured
        self.more_text = more_text


class UnexpectedOutput(ToolFailure):
    """What the tool printed is not what its description promises."""


class InputNeeded(McpgreenError):
    """A stateless client has to come back with answers; becomes an `input_required` result."""

    def __init__(self, questions: dict[str, Any], state: str) -> None:
        super().__init__("input is needed")
        self.questions = questions
        self.state = state


class ScriptAsks(McpgreenError):
    """A script printed `inputRequests` instead of a result, and a state of its own to be run again with."""

    def __init__(self, questions: Any, state: Any) -> None:
        super().__init__("the script asks")
        self.questions = questions
        self.state = state


class ProjectError(McpgreenError):
    """Something in the project on disk is wrong: a warning where the rest can be served, else a reason not to start."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Untrusted(ProjectError):
    """Others could have written a file that decides what is run."""


class Unanswered(McpgreenError):
    """A request of ours to the client got no result."""


class AnswerOverdue(Unanswered):
    """The client did not answer in time."""


class LinkClosed(Unanswered):
    """The client cannot answer any more."""


class RefusedByClient(Unanswered):
    """The client answered with an error; `code` is None when it gave no integer."""

    def __init__(self, message: str, *, code: int | None, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class UsageError(McpgreenError):
    """The command line makes no sense: message on stderr, exit status 2."""
