"""A client of a project's server, for tests: it answers questions as a test says, and keeps what comes before a result.

One call at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.connection import Connection
from mcpgreen.cli.mcp_client import WITH_TASKS, McpClient, Refused, sampled, unknown
from mcpgreen.protocol.input.requests import ELICIT, SAMPLE, blocks_of
from mcpgreen.protocol.revisions import BY_NAME, LATEST_HANDSHAKE
from mcpgreen.text.json_types import Json

PATIENCE_SECS = 600.0  # for an answer, if a test says nothing; a tool has a time limit of its own
MAX_NOTIFICATIONS = 10_000
SHOWN_CHARS = 200
ALL: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, **WITH_TASKS}


@dataclass
class Outcome:
    """What came of a call: a result or an error, and what came before. `unanswered` are the questions for which there
    was no answer, `unused` the answers for which there was no question."""

    result: Json = field(default_factory=dict)
    error: Json | None = None
    progress: list[Json] = field(default_factory=list)
    messages: list[Json] = field(default_factory=list)  # of the log
    unanswered: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    secs: float = 0.0

    @property
    def is_error(self) -> bool:
        return self.error is not None or bool(self.result.get("isError"))

    @property
    def text(self) -> str:
        """The text of the result, without newlines at its end; or the message of the error."""
        blocks = [block["text"] for block in self.result.get("content", ()) if block.get("type") == "text"]
        return "\n".join(blocks).rstrip("\n") if self.error is None else str(self.error.get("message"))

    @property
    def structured(self) -> Any:
        return self.result.get("structuredContent")

    @property
    def exit_code(self) -> Any:
        return self.result.get("_meta", {}).get("exitCode")

    @property
    def stderr(self) -> str:
        """The end of what the tool wrote to stderr."""
        return str(self.result.get("_meta", {}).get("stderr", ""))


class ProjectClient(McpClient):
    """`capabilities` is "all", "none", or an object as the protocol has it. Raises NoAnswer where the server ends."""

    def __init__(
        self,
        project_root: str,
        *,
        environment: Mapping[str, str] | None = None,
        revision: str = LATEST_HANDSHAKE.name,
        capabilities: Json | str = "all",
    ) -> None:
        root = os.path.realpath(project_root)
        self._answers: Mapping[str, Any] = {}
        self._outcome = Outcome()
        if isinstance(capabilities, str):
            capabilities = ALL if capabilities == "all" else {}
        env = {**os.environ, "MCPGREEN_RESULT_META": "always", **(environment or {})}
        self._connection = Connection((*program_words(env), "serve", "--project-root", root), env=env, cwd=root)
        try:
            super().__init__(
                self._connection.send,
                self._connection.receive,
                give_up_at=time.monotonic() + PATIENCE_SECS,
                revision=BY_NAME[revision],
                capabilities=capabilities,
                answer=self._answer_to,
                on_notification=self._keep,
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def call(
        self,
        name: str,
        arguments: Json | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        within_secs: float = PATIENCE_SECS,
    ) -> Outcome:
        """Call a tool, answer its questions, and follow its task to the end. `answers` are found by a field of the form
        that the tool asks for, or by words in its question. Raises TimeoutError."""
        self._answers = answers or {}
        outcome = self._outcome = Outcome(unused=list(self._answers))
        params: Json = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": "progress"}}
        began_at = time.monotonic()
        self.give_up_at = began_at + within_secs
        try:
            response = self.play("tools/call", params)
            outcome.result, outcome.error = response.get("result", {}), response.get("error")
        except Refused as refused:
            outcome.error = refused.error
        outcome.secs = time.monotonic() - began_at
        return outcome

    def request(self, method: str, params: Json | None = None) -> Json:
        """Send any other request, and return the whole response. Raises TimeoutError."""
        self.give_up_at = time.monotonic() + PATIENCE_SECS
        return self.exchange(method, params or {})

    def _keep(self, notification: Json) -> None:
        kinds = {"notifications/progress": self._outcome.progress, "notifications/message": self._outcome.messages}
        kept = kinds.get(notification["method"])
        if kept is not None and len(kept) < MAX_NOTIFICATIONS:
            kept.append(notification["params"])

    def _answer_to(self, method: str, params: Json) -> Json:
        if method not in (ELICIT, SAMPLE):
            return unknown(method)
        fields = params.get("requestedSchema", {}).get("properties", {})
        asked = [block.get("text", "") for each in params.get("messages", ()) for block in blocks_of(each)]
        words = " ".join(map(str, [params.get("message", ""), *asked])).strip()
        for name, answer in self._answers.items():
            if name in fields or (name and name.casefold() in words.casefold()):
                self._outcome.unused = [each for each in self._outcome.unused if each != name]
                return {"result": sampled(answer) if method == SAMPLE and isinstance(answer, str) else answer}
        self._outcome.unanswered.append(words[:SHOWN_CHARS])
        return {"result": {"action": "cancel"}} if method == ELICIT else unknown(method)
