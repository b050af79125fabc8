"""All of mcpgreen's exceptions.

The parent class decides what the client gets: for an `RpcError` a JSON-RPC error object, for a `ToolFailure` a result
that the model can read. (A cancelled call ends by gevent's own `GreenletExit`, and gets no answer.) There is no
behaviour here; `protocol.revision_fields.error_object` is the only place that builds the error object.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcpgreen.text.json_types import Json

ERROR_CODES = range(-(1 << 31), 1 << 31)  # 32 bits, which every client can hold


class McpgreenError(Exception):
    """The base class of all errors that we raise on purpose."""


class RpcError(McpgreenError):
    """A request cannot be served; the client gets a JSON-RPC error object."""

    code = -32603
    stateless_code: int | None = None  # if it differs in the stateless era
    summary = "Internal error"

    def __init_subclass__(cls, *, code: int = 0, stateless_code: int = 0, summary: str = "") -> None:
        cls.code = code or cls.code
        cls.stateless_code = stateless_code or cls.stateless_code
        cls.summary = summary or cls.summary

    def __init__(self, message: str | None = None, *, data: object | None = None) -> None:
        super().__init__(message or self.summary)
        self.message = message or self.summary
        self.data = data


class ParseError(RpcError, code=-32700, summary="Parse error"):
    """The line is not JSON."""


class InvalidRequest(RpcError, code=-32600, summary="Invalid Request"):
    """The message is JSON, but not a JSON-RPC request."""


class MethodNotFound(RpcError, code=-32601, summary="Method not found"):
    """There is no such method in the client's revision, or its capability is not offered."""


class InvalidParams(RpcError, code=-32602, summary="Invalid params"):
    """The parameters are wrong: unknown name, wrong type, stale cursor."""


class ResourceNotFound(RpcError, code=-32002, stateless_code=-32602, summary="Resource not found"):
    """No resource has this URI."""

    def __init__(self, uri: str) -> None:
        super().__init__(data={"uri": uri})


class Denied(InvalidParams):
    """The allow-list, a path check or the project's policy refuses the call."""


class InsufficientScope(RpcError, code=-32600, summary="Insufficient scope"):
    """The caller is known, but its token lacks scopes.

    -32600, because only another token would help: -32602 would make a model try other parameters. A transport that
    knows tokens also reports it in its own way, from `data`: over HTTP, by 403 and a challenge.
    """

    def __init__(self, missing: Sequence[str], *, required: Sequence[str]) -> None:
        super().__init__(
            f"This needs the scope {' '.join(missing)}, which the caller does not have.",
            data={"requiredScopes": list(required), "missingScopes": list(missing)},
        )


class InternalError(RpcError):
    """There is a bug in the server, or a problem with the machine."""


class OutputTooLarge(InternalError):
    """A script's output, or a response, is larger than its limit."""


class NotInitialized(RpcError, code=-32000, summary="Server not initialized"):
    """Handshake era only: a request came before `initialize` or, over a pipe, before `notifications/initialized`."""

    remedy = (
        "Send initialize and then notifications/initialized; or, as a stateless client, "
        "io.modelcontextprotocol/protocolVersion and clientCapabilities in params._meta."
    )


class ShuttingDown(RpcError, code=-32003, summary="Server shutting down"):
    """Handshake era only: a request came after `shutdown`."""


class ShutdownNotRequested(RpcError, code=-32005, summary="Shutdown not requested"):
    """Handshake era only: `exit` came as a request before `shutdown`."""


class MissingClientCapability(RpcError, stateless_code=-32021, summary="Missing client capability"):
    """The call needs to ask the client something, and the client has not declared that it can answer."""


class TooManyPolls(RpcError, code=-32000, summary="Too many requests for tasks; wait for pollIntervalMs"):
    """A client asks for its tasks much more often than it was told to."""


class HeaderMismatch(RpcError, code=-32020, summary="Header mismatch"):
    """Stateless era, over HTTP: a header is missing, or differs from the body."""


class UnsupportedVersion(RpcError, code=-32022, summary="Unsupported protocol version"):
    """Stateless era: the envelope names a revision that this era does not support."""


class ScriptError(RpcError):
    """A script chose the code, message and data (`mcp_fail`, or `mcp_tools_error` in policy.sh)."""

    def __init__(self, code: int, message: str, *, data: object | None = None) -> None:
        super().__init__(message, data=data)
        self.code = code


class ToolFailure(McpgreenError):
    """The tool failed, or its arguments are wrong; the model gets a result with `isError` that it can act on.

    `meta` and `structured` become `_meta` and `structuredContent` of the result; the strings of `more_text` become
    further blocks. `problems` are appended to the text; they repeat values, so a log shows `what` only.
    """

    def __init__(
        self,
        text: str,
        *,
        meta: Json | None = None,
        structured: Json | None = None,
        more_text: tuple[str, ...] = (),
        problems: Sequence[str] = (),
    ) -> None:
        self.what = text
        self.problems = problems
        self.text = f"{text}: {'; '.join(problems)}" if problems else text
        super().__init__(self.text)
        self.meta = meta
        self.structured = structured
        self.more_text = more_text

    @property
    def result(self) -> Json:
        """The result that the model reads."""
        blocks = [{"type": "text", "text": text} for text in (self.text, *self.more_text)]
        result: Json = {"content": blocks, "isError": True}
        if self.structured is not None:
            result["structuredContent"] = self.structured
        if self.meta:
            result["_meta"] = self.meta
        return result


class UnexpectedOutput(ToolFailure):
    """The tool's output does not match its description."""


class InputNeeded(McpgreenError):
    """A stateless client has to come back with answers; it gets an `input_required` result."""

    def __init__(self, questions: Json, state: str) -> None:
        super().__init__("input is needed")
        self.result: Json = {"resultType": "input_required", "inputRequests": questions, "requestState": state}


class ScriptAsks(McpgreenError):
    """A script printed `inputRequests` instead of a result, perhaps with a state for its next run."""

    def __init__(self, questions: object, state: object) -> None:
        super().__init__("the script asks")
        self.questions = questions
        self.state = state


class ProjectError(McpgreenError):
    """A project file is invalid: there is a warning if the rest can be served; otherwise, the server does not start."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Untrusted(ProjectError):
    """Other users could have changed a file that determines what is run."""


class Unanswered(McpgreenError):
    """The client did not answer one of the server's requests. A script that asked gets `status` as the reason."""

    status = "error"


class AnswerOverdue(Unanswered):
    """The client did not answer in time."""

    status = "timeout"


class LinkClosed(Unanswered):
    """The client cannot answer any more."""

    status = "cancelled"


class RefusedByClient(Unanswered):
    """The client answered with an error; `code` is None if it was not an integer."""

    def __init__(self, message: str, *, code: int | None) -> None:
        super().__init__(message)
        self.status = "unsupported" if code == MethodNotFound.code else "error"


class UsageError(McpgreenError):
    """The command line is invalid: the message goes to stderr, and the exit status is 2."""
