"""The opening of a conversation, before there is an engine: what is answered, what is left, and that nothing waits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen.first_answer import Opening
from mcpgreen.project.project import open_project
from mcpgreen.protocol.admission import Identity
from mcpgreen.protocol.revisions import offered_capabilities
from mcpgreen.protocol.token import RemoteToken
from tests.e2e.test_endings import HELLO, READY
from tests.support.project import ProjectBuilder
from tests.support.wire import Json, modern_meta

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def lines(*messages: Json) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


class Conversation:
    """A client at the other ends of two pipes."""

    def __init__(self, project: ProjectBuilder, instructions: str | None = None, **options: Any) -> None:
        self.stdin, self.to_server = os.pipe()
        self.from_server, self.stdout = os.pipe()
        found, _, _ = open_project({"project_root": str(project.root)}, {})
        identity = Identity(found.server_info(), instructions)
        offered = offered_capabilities(is_minimal=False)
        self.opening = Opening(self.stdin, self.stdout, identity, offered=offered, log_level="info", **options)

    def say(self, data: bytes) -> None:
        os.write(self.to_server, data)

    def run(self) -> None:
        """As `__main__` does it."""
        self.opening.answer()

    def answered(self) -> list[Any]:
        """The ids of what has been answered by now."""
        return [json.loads(line)["id"] for line in self.heard().splitlines()]

    def heard(self) -> bytes:
        os.set_blocking(self.from_server, False)
        heard = b""
        try:
            while chunk := os.read(self.from_server, 65536):
                heard += chunk
        except BlockingIOError:
            pass
        return heard

    def close(self) -> None:
        for descriptor in (self.stdin, self.to_server, self.from_server, self.stdout):
            os.close(descriptor)


@pytest.fixture
def conversation(project: ProjectBuilder) -> Iterator[Conversation]:
    project.tool("a", "echo")
    conversation = Conversation(project)
    yield conversation
    conversation.close()


def test_initialize_is_answered_and_the_rest_is_left(conversation: Conversation) -> None:
    conversation.say(lines(HELLO, READY, LIST) + b"{")

    conversation.run()

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(READY, LIST) + b"{"
    assert not conversation.opening.handshake.is_ready


def test_discover_is_answered(conversation: Conversation) -> None:
    conversation.say(lines({**LIST, "method": "server/discover", "params": {"_meta": modern_meta()}}))

    conversation.run()

    assert conversation.answered() == [1]
    assert conversation.opening.unread == b""


@pytest.mark.parametrize(
    "first",
    [
        lines(PING),
        lines(LIST),
        lines({**HELLO, "params": []}),
        lines({**HELLO, "id": None}),
        lines({**HELLO, "params": {"protocolVersion": 5}}),
        lines({**PING, "params": {"x": "initialize"}}),
        b"initialize\n",
        b"[" + lines(HELLO).strip() + b"]\n",
        lines(HELLO)[:-1],
    ],
)
def test_any_other_first_message_is_left_to_the_engine(conversation: Conversation, first: bytes) -> None:
    conversation.say(first)

    conversation.run()

    assert conversation.heard() == b""
    assert conversation.opening.unread == first


def test_initialize_without_the_token_is_left_to_the_engine(project: ProjectBuilder) -> None:
    token = RemoteToken("t" * 40, key="mcpgreen/token")
    conversation = Conversation(project, token=token)
    conversation.say(lines(HELLO))

    conversation.run()

    assert conversation.heard() == b""
    conversation.close()
