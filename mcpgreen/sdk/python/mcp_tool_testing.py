"""Answer a tool's questions in a test, in place of a client: `mcp_tool.testing`, loaded on demand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_tool_asking as asking

__all__ = ["testing"]

testing = sys.modules[__name__]
_CLIENT = {"MCP_ASK_REPLY": "x", "MCP_LOG_STREAM": os.devnull, "MCP_ELICIT_MODES": "form url"}
_CLIENT["MCP_SAMPLING_SUPPORTED"] = "1"
_REPLIES: dict[object, Any] = {kind: {"status": status} for status, (kind, _) in asking._WHY_NOT.items()}
for _kind, _action in ((asking.Declined, "decline"), (asking.Dismissed, "cancel")):
    _REPLIES[_kind] = {"status": "answered", "result": {"action": _action}}


@contextmanager
def answers(*given: Any) -> Iterator[list[dict[str, Any]]]:
    """Answer each question with the next of these values, and yield the list of the questions.

    A form gets a dictionary, or the value of its only field; what a model says is a string; other questions get their
    result. A subclass of NotAnswered means no answer. Raises AssertionError if answers are missing or left over.
    """
    from unittest import mock  # takes long to import, and `from mcp_tool import *` imports this file

    questions: list[dict[str, Any]] = []

    def reply(stream: str, line: bytes, path: str) -> dict[str, Any]:
        asked = json.loads(line)["ask"]
        questions.extend(asked.values())
        missing = questions[len(given) :]
        assert not missing, f"no answer is left for {json.dumps(missing[0]['params'])}"
        return dict(zip(asked, map(_reply, asked.values(), given[len(questions) - len(asked) :]), strict=False))

    with mock.patch.dict(os.environ, _CLIENT), mock.patch.object(asking, "_round_trip", reply):
        yield questions
    assert len(questions) >= len(given), f"these answers were not used: {given[len(questions) :]!r}"


def _reply(question: dict[str, Any], value: Any) -> dict[str, Any]:
    if isinstance(value, type):
        return dict(_REPLIES[value])
    if question["method"] == "elicitation/create":
        fields = list(question["params"].get("requestedSchema", {}).get("properties", ()))
        content = {fields[0]: value} if len(fields) == 1 and not isinstance(value, dict) else value
        value = {"action": "accept", **({"content": content} if fields else {})}
    elif isinstance(value, str):
        value = {"role": "assistant", "content": {"type": "text", "text": value}, "model": "testing"}
    return {"status": "answered", "result": value}
