"""Large projects, which take a while to look at: nobody waits for that but who asks for a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import servers_on
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

MANY = 1500  # takes well over 30 ms to look at


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    """Many resources. Each test adds some of its own."""
    project = ProjectBuilder(tmp_path_factory.mktemp("many") / "project")
    for number in range(MANY):
        place = project.root / "resources" / str(number // 100)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").touch()
    return project


@pytest.fixture
def speak(many: ProjectBuilder) -> Iterator[Callable[..., Client]]:
    with servers_on(many) as start_server:

        def speak(**settings: Any) -> Client:
            client = Client(start_server(**settings), "2025-11-25")
            client.wire.settle()  # a list that comes before the engine is there is another matter
            return client

        yield speak


def answers(client: Client) -> list[int]:
    return [message["id"] for message in client.wire.seen if "id" in message]


def total(client: Client) -> int:
    counted: int = client.result("resources/list")["_meta"]["mcpbash/total"]
    return counted


def test_a_ping_does_not_wait_for_a_long_look(many: ProjectBuilder, speak: Callable[..., Client]) -> None:
    """With 20,000 files each list, and each read after a change, held up everybody for more than a second."""
    client = speak()
    client.result("resources/templates/list")  # which is of the same look
    many.resource("9/ping.txt", "new")
    listed, ping = client.start("resources/list"), client.start("ping")
    client.wire.response(listed)

    assert answers(client).index(ping) < answers(client).index(listed)


def test_a_read_does_not_wait_for_a_look_after_a_change(many: ProjectBuilder, speak: Callable[..., Client]) -> None:
    client = speak()
    total(client)
    known = (many.root / "resources/7/700.txt").as_uri()
    for number in range(3):
        many.resource(f"8/read{number}.txt", "new")
        listed, read = client.start("resources/list"), client.start("resources/read", {"uri": known})
        client.wire.response(listed)
        assert answers(client).index(read) < answers(client).index(listed)


def test_a_list_shows_what_was_there_when_it_was_asked_for(many: ProjectBuilder, speak: Callable[..., Client]) -> None:
    client = speak()
    before = total(client)
    for number in range(1, 6):
        many.resource(f"{number}/list{number}.txt", "new")
        assert total(client) == before + number


def test_what_is_not_known_yet_is_looked_for(many: ProjectBuilder, speak: Callable[..., Client]) -> None:
    client = speak()
    total(client)
    many.write("resources/own.meta.json", '{"uri": "echo:///hello"}')

    assert client.result("resources/read", {"name": "own"})["contents"][0]["uri"] == "echo:///hello"
    assert client.error("resources/read", {"name": "never"})["code"] == -32002


def test_who_waits_for_a_look_may_give_up(many: ProjectBuilder, speak: Callable[..., Client]) -> None:
    """The look that it began is begun anew by the next who wants one."""
    client = speak()
    client.result("resources/templates/list")
    many.resource("9/cancelled.txt", "new")
    cancelled = client.start("resources/list")
    client.wire.notify("notifications/cancelled", {"requestId": cancelled})
    before = total(client)
    many.resource("new.txt", "new")

    eventually(lambda: total(client) == before + 1)
    assert cancelled not in answers(client)
