"""Scripts that ask without an SDK, by MCP_ELICIT_REQUEST_FILE and MCP_ELICIT_RESPONSE_FILE, in both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL, FORM, URL, Talk, accept, form, url
from tests.support.waiting import eventually
from tests.support.wire import MODERN, Json, text_of

way, project = ways.way, ways.project
pytestmark = [ways.per_call("files"), ways.cheapest(way=["resident"])]

# `asked REQUEST` prints the response. The request is written in place, as a script without care does it.
ASKED = """
asked() {
  rm -f "$MCP_ELICIT_RESPONSE_FILE"
  printf '%s' "$1" >"$MCP_ELICIT_REQUEST_FILE"
  until [ -f "$MCP_ELICIT_RESPONSE_FILE" ]; do sleep 0.01; done
  cat "$MCP_ELICIT_RESPONSE_FILE"
}
"""
NAME_SCHEMA: Json = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
WHO: Json = {"message": "Who?", "schema": NAME_SCHEMA, "mode": "form"}
WHO_AS_ASKED = form("Who?", name={"type": "string"})


def asker(project: ProjectBuilder, *requests: Any, before: str = "", **fields: Any) -> None:
    lines = "".join(f"asked '{request if isinstance(request, str) else json.dumps(request)}'\n" for request in requests)
    project.tool("asker", before + ASKED + lines, **fields)


def responses_in(result: Json) -> list[Json]:
    return [json.loads(line) for line in text_of(result).splitlines()]


def answers(client: Client, id: Any) -> list[Json]:
    answer = client.wire.response(id)
    assert "result" in answer, answer
    return responses_in(answer["result"])


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_a_client_that_shook_hands_is_asked_at_once(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    asker(project, WHO, {"message": "Again?", "schema": NAME_SCHEMA}, {"message": "Sure?"})
    client = speak(revision, capabilities=FORM)
    id = client.start_tool("asker")
    asked = []
    for answer in (accept(name="Zoë"), {"action": "decline"}, {"action": "accept"}):
        asked.append(client.asked("elicitation/create"))
        client.answer(asked[-1], answer)

    assert [request["params"]["message"] for request in asked] == ["Who?", "Again?", "Sure?"]
    assert asked[0]["params"]["requestedSchema"] == NAME_SCHEMA
    assert asked[2]["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    assert answers(client, id) == [
        accept(name="Zoë"),
        {"action": "decline", "content": None},
        {"action": "accept", "content": None},
    ]


def test_a_stateless_client_comes_back_with_the_answers(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, WHO, {"message": "Where?", "url": "https://example.com/", "mode": "url"})
    talk = Talk(speak(MODERN, capabilities=ALL), name="asker")
    first = talk.begin()
    second = talk.answer(accept(name="Zoë"))
    result = talk.answer({"action": "cancel"})

    assert list(first["inputRequests"].values()) == [WHO_AS_ASKED]
    assert list(second["inputRequests"].values()) == [url("Where?", "https://example.com/")]
    assert responses_in(result) == [accept(name="Zoë"), {"action": "cancel", "content": None}]


def test_what_the_client_cannot_be_asked_is_declined(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, WHO)
    client = speak("2025-11-25", capabilities=URL)
    (answer,) = responses_in(client.call_tool("asker"))

    assert (answer["action"], answer["content"], answer["reason"]) == ("decline", None, "unsupported")


@pytest.mark.parametrize("capabilities", [FORM, {}], ids=["capable", "not"])
def test_the_files_are_named_if_the_client_can_be_asked(
    project: ProjectBuilder, speak: Speak, capabilities: Json
) -> None:
    project.tool("named", 'printf "%s" "${MCP_ELICIT_REQUEST_FILE:+request}${MCP_ELICIT_RESPONSE_FILE:+response}"')
    named = text_of(speak(capabilities=capabilities).call_tool("named"))
    assert named == ("requestresponse" if capabilities else "")


@pytest.mark.parametrize(
    ("request_text", "reason"),
    [
        ('{"message": ', "it is not JSON"),
        ("[1]", "it must be an object with a message"),
        ('{"schema": {}}', "message"),
        ('{"message": "Go", "mode": "url"}', "url"),
        ('{"message": "Go", "mode": "loud"}', "mode"),
    ],
)
def test_a_question_that_makes_no_sense_is_an_error(
    project: ProjectBuilder, speak: Speak, request_text: str, reason: str
) -> None:
    asker(project, request_text)
    client = speak(capabilities=ALL)
    (answer,) = responses_in(client.call_tool("asker"))

    assert (answer["action"], answer["content"], answer["reason"]) == ("error", None, "invalid")
    assert reason in answer["message"]


def test_a_question_that_is_too_long_is_an_error(project: ProjectBuilder, speak: Speak) -> None:
    body = ASKED.replace("printf '%s' \"$1\"", "head -c 1100000 /dev/zero | tr '\\0' x")
    project.tool("asker", body + "asked\n")
    (answer,) = responses_in(speak(capabilities=ALL).call_tool("asker"))
    assert "more than 1048576 bytes" in answer["message"]


def test_a_question_that_is_written_piece_by_piece_is_asked_when_it_is_whole(
    project: ProjectBuilder, speak: Speak
) -> None:
    """The server looks several times while it is being written."""
    slowly = """
    slowly() { for piece in '{"message"' ':' '"Who?"' ',"schema"' ':{"type":"object",' '"properties":{}}}'; do
      printf %s "$piece"; sleep 0.12; done; }
    """
    project.tool("asker", slowly + ASKED.replace("printf '%s' \"$1\"", "slowly") + "asked\n")
    client = speak(capabilities=ALL)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    client.answer(request, accept())

    assert (request["params"]["message"], answers(client, id)) == ("Who?", [accept()])


def test_the_response_may_be_a_fifo(project: ProjectBuilder, speak: Speak) -> None:
    body = f"""mkfifo -m 600 "$MCP_ELICIT_RESPONSE_FILE"
    printf '%s' '{json.dumps(WHO)}' >"$MCP_ELICIT_REQUEST_FILE.new"
    mv "$MCP_ELICIT_REQUEST_FILE.new" "$MCP_ELICIT_REQUEST_FILE"
    cat "$MCP_ELICIT_RESPONSE_FILE"
    """
    project.tool("asker", body)
    client = speak(capabilities=ALL)
    id = client.start_tool("asker")
    client.answer(client.asked("elicitation/create"), accept(name="Zoë"))

    assert answers(client, id) == [accept(name="Zoë")]


@pytest.mark.parametrize(
    "thing",
    ["mkfifo", "mkdir", "ln -s /dev/zero", "ln -s /etc/passwd", ":>"],
    ids=["fifo", "directory", "device", "link", "empty"],
)
def test_something_other_than_a_file_is_no_question_and_does_not_hold_up_calls(
    project: ProjectBuilder, speak: Speak, thing: str
) -> None:
    """The script goes on when another call has been served beside it, after some looks."""
    project.tool(
        "odd", f'{thing} "$MCP_ELICIT_REQUEST_FILE"\nsleep 0.4\nuntil [ -e go ]; do sleep 0.01; done\nprintf on'
    )
    project.tool("quick", "printf quick")
    client = speak(capabilities=ALL)
    id = client.start_tool("odd")
    assert text_of(client.call_tool("quick")) == "quick"
    project.write("go", "")

    assert text_of(client.wire.response(id)["result"]) == "on"
    assert [line for line in client.wire.seen if line.get("method") == "elicitation/create"] == []


def test_who_asks_another_thing_meanwhile_gets_the_answer_to_that(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    """A script that has lost patience must not take the answer to its first question for that to the second."""
    impatient = f"""printf '%s' '{json.dumps(WHO)}' >"$MCP_ELICIT_REQUEST_FILE"
    while [ -e "$MCP_ELICIT_REQUEST_FILE" ]; do sleep 0.01; done
    """
    asker(project, {**WHO, "message": "And now?"}, before=impatient)
    client = speak(capabilities=ALL, tmp_root=tmp_path)
    id = client.start_tool("asker")
    first = client.asked("elicitation/create")
    eventually(lambda: list(tmp_path.glob("mcpgreen.state.*/*.elicit.request")))
    client.answer(first, accept(name="first"))
    second = client.asked("elicitation/create")
    client.answer(second, accept(name="second"))

    assert second["params"]["message"] == "And now?"
    assert answers(client, id) == [accept(name="second")]


def test_an_answer_that_comes_while_the_next_question_is_being_written_is_dropped(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    """A shell creates the file first and fills it then. In between, the script got the answer to its first question."""
    project.tool("quick", "printf quick")
    slowly = f"""printf '%s' '{json.dumps(WHO)}' >"$MCP_ELICIT_REQUEST_FILE"
    while [ -e "$MCP_ELICIT_REQUEST_FILE" ]; do sleep 0.01; done
    {{ until [ -e go ]; do sleep 0.01; done
      printf '%s' '{json.dumps({**WHO, "message": "And now?"})}'; }} >"$MCP_ELICIT_REQUEST_FILE"
    until [ -f "$MCP_ELICIT_RESPONSE_FILE" ]; do sleep 0.01; done
    cat "$MCP_ELICIT_RESPONSE_FILE"
    """
    asker(project, before=slowly)
    client = speak(capabilities=ALL, tmp_root=tmp_path)
    id = client.start_tool("asker")
    first = client.asked("elicitation/create")
    eventually(lambda: list(tmp_path.glob("mcpgreen.state.*/*.elicit.request")))
    client.answer(first, accept(name="first"))
    assert text_of(client.call_tool("quick")) == "quick"
    project.write("go", "")
    client.answer(client.asked("elicitation/create"), accept(name="second"))

    assert answers(client, id) == [accept(name="second")]


@pytest.mark.parametrize("ends", ["answered", "cancelled", "ended"])
def test_nothing_is_left_of_the_files(project: ProjectBuilder, speak: Speak, tmp_path: Path, ends: str) -> None:
    """Neither after the answer, nor when the call is cancelled or the script has gone while its question is open."""
    post = f"printf '%s' '{json.dumps(WHO)}'"
    again = f'{post} >"$MCP_ELICIT_REQUEST_FILE"\n'
    project.tool("asker", ASKED + f"asked '{json.dumps(WHO)}' >/dev/null\n{again}")
    if ends == "ended":
        project.tool("asker", again + 'while [ -e "$MCP_ELICIT_REQUEST_FILE" ]; do sleep 0.01; done\n' + again)
    client = speak(capabilities=ALL, tmp_root=tmp_path)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    if ends == "cancelled":
        client.wire.notify("notifications/cancelled", {"requestId": id})
    elif ends == "answered":
        client.answer(request, accept(name="Zoë"))
    if ends != "cancelled":
        assert client.wire.response(id)["result"]["isError"] is False

    assert list(tmp_path.glob("mcpgreen.state.*"))
    eventually(lambda: not list(tmp_path.glob("mcpgreen.state.*/*")))
