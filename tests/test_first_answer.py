"""The opening of a conversation, before there is an engine: what is answered, what is left, and that nothing waits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from mcpgreen import first_answer, journal
from mcpgreen.catalog.lists.early import EarlyLists
from mcpgreen.first_answer import MOST_LISTS, Opening
from mcpgreen.project.project import open_project
from mcpgreen.protocol.introduction import Identity
from mcpgreen.protocol.revisions import offered_capabilities
from mcpgreen.protocol.token import RemoteToken
from tests.support.project import ProjectBuilder
from tests.support.wire import modern_meta

Json = dict[str, Any]
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def lines(*messages: Json) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


class Conversation:
    """A client at the other ends of two pipes."""

    def __init__(self, project: ProjectBuilder, **options: Any) -> None:
        self.stdin, self.to_server = os.pipe()
        self.from_server, self.stdout = os.pipe()
        found, settings, _ = open_project({"project_root": str(project.root)}, {})
        identity = Identity(found.server_info(), None)
        offered = offered_capabilities(is_minimal=False)
        self.opening = Opening(self.stdin, self.stdout, identity, offered=offered, log_level="info", **options)
        self.lists = EarlyLists(found, settings, identity.info, {})

    def say(self, data: bytes) -> None:
        os.write(self.to_server, data)

    def run(self) -> None:
        """As `__main__` does it."""
        self.opening.greet()
        self.opening.lists = self.lists
        self.opening.go_on()

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


def test_a_greeting_and_the_first_list_are_answered(conversation: Conversation) -> None:
    conversation.say(lines(HELLO, READY, LIST))

    conversation.run()

    assert conversation.answered() == [0, 1]
    assert conversation.opening.unread == lines(READY), "the engine hears it as well"
    assert not conversation.opening.handshake.is_ready, "for it is the engine that becomes ready then"


def test_so_is_a_list_that_comes_later(conversation: Conversation) -> None:
    conversation.say(lines(HELLO))
    conversation.run()
    conversation.say(lines(READY)[:-20])
    conversation.opening.go_on()
    conversation.say(lines(READY)[-20:] + lines(LIST))

    conversation.opening.go_on()

    assert conversation.answered() == [0, 1]
    assert conversation.opening.unread == lines(READY)


def test_a_stateless_list_may_be_the_very_first_line(conversation: Conversation) -> None:
    conversation.say(lines({**LIST, "params": {"_meta": modern_meta()}}))

    conversation.run()

    assert conversation.answered() == [1]
    assert conversation.opening.unread == b""


@pytest.mark.parametrize(
    "others",
    [
        lines(PING),
        lines({**LIST, "method": "roots/list"}),
        lines({**LIST, "method": "tools/call"}),
        lines({**LIST, "params": []}),
        lines({**LIST, "params": {"cursor": "x"}}),
        lines({**LIST, "id": None}),
        lines({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        b"rubbish\n",
        b"[" + lines(LIST).strip() + b"]\n",
    ],
)
def test_from_anything_else_on_all_is_left_to_the_engine(conversation: Conversation, others: bytes) -> None:
    conversation.say(lines(HELLO, READY) + others + lines(LIST))

    conversation.run()

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(READY) + others + lines(LIST)


def test_a_list_before_the_end_of_the_handshake_is_left_to_the_engine(conversation: Conversation) -> None:
    conversation.say(lines(HELLO, LIST))

    conversation.run()

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(LIST)


def test_the_end_of_the_input_is_noticed(conversation: Conversation) -> None:
    conversation.say(lines(HELLO, READY, LIST) + b"{")
    os.close(conversation.to_server)

    conversation.run()

    conversation.to_server = os.dup(conversation.stdin)
    assert conversation.answered() == [0, 1]
    assert conversation.opening.is_at_end
    assert conversation.opening.unread == lines(READY) + b"{"


def test_who_wants_to_see_every_message_sees_them_in_the_engine(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation.say(lines(HELLO, READY, LIST))

    conversation.opening.greet()
    conversation.opening.go_on()  # without lists

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(READY, LIST)


def test_a_list_without_the_token_is_left_to_the_engine(project: ProjectBuilder) -> None:
    project.tool("a", "echo")
    token = RemoteToken("t" * 40, key="mcpgreen/token", fallback_key="", max_failures_per_min=0)
    conversation = Conversation(project, token=token)
    hello = {**HELLO, "params": {**HELLO["params"], "_meta": {"mcpgreen/token": "t" * 40}}}  # type: ignore[dict-item]
    conversation.say(lines(hello, READY, LIST))

    conversation.run()

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(READY, LIST)
    conversation.close()


def test_no_more_lists_than_a_client_has_are_answered_here(conversation: Conversation) -> None:
    """Each takes a look at the disk, and nobody else is served meanwhile."""
    conversation.say(lines(HELLO, READY, *[LIST] * (MOST_LISTS + 1)))

    conversation.run()

    assert conversation.answered() == [0, *[1] * MOST_LISTS]
    assert conversation.opening.unread == lines(READY, LIST)


def test_a_client_that_does_not_read_is_not_waited_for(
    project: ProjectBuilder, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_answer, "DRAIN_SECS", 0.01)
    for number in range(100):
        project.tool(f"t{number}", "echo", description="x" * 2000)
    conversation.say(lines(HELLO, READY, LIST, LIST))

    conversation.run()

    opening = conversation.opening
    heard = conversation.heard()
    assert opening.unsent
    assert opening.unread == lines(READY, LIST), "what follows is for the engine, which writes the rest first"
    assert [json.loads(line)["id"] for line in (heard + opening.unsent).splitlines()] == [0, 1]


def test_a_long_look_is_given_up_when_somebody_waits(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ping behind a list of a hundred thousand tools: the engine takes turns."""
    monkeypatch.setattr(first_answer, "LONGEST_LOOK_SECS", -1.0)
    monkeypatch.setattr("mcpgreen.catalog.pace.STRETCH_SECS", -1.0)
    conversation.say(lines(HELLO, READY, LIST, PING))

    conversation.run()

    assert conversation.answered() == [0]
    assert conversation.opening.unread == lines(READY, LIST, PING)


def test_but_not_when_nobody_does(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_answer, "LONGEST_LOOK_SECS", -1.0)
    monkeypatch.setattr("mcpgreen.catalog.pace.STRETCH_SECS", -1.0)
    conversation.say(lines(HELLO, READY, LIST))

    conversation.run()

    assert conversation.answered() == [0, 1]


def test_a_list_has_its_line_in_the_log(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "tells_calls", True)
    told: list[Any] = []
    monkeypatch.setattr(journal, "_outputs", (lambda level, message, rest, fields: told.append((message, fields)),))
    conversation.say(lines(HELLO, READY, LIST))

    conversation.run()

    (message, fields) = told[-1]
    assert message.startswith("tools/list ok ")
    assert fields | {"ms": 0} == {"method": "tools/list", "id": 1, "outcome": "ok", "ms": 0}
