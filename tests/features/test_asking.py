"""Scripts that ask clients which shook hands: what each revision can be asked, and what becomes of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import HANDSHAKE_REVISIONS, Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL, ASK, FORM, accept, form, printing, said, sample, url
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Json, text_of

way, project = ways.way, ways.project

WITH_FORMS = ("2025-06-18", "2025-11-25")
NAME = form("Who are you?", name={"type": "string"})


def asker(project: ProjectBuilder, questions: Json, *, name: str = "asker", more: str = "", **fields: Any) -> None:
    """A tool that asks once and prints what it is told."""
    project.python_tool(name, f"{ASK}\nprint(json.dumps(ask({questions!r}{more})), end='')", **fields)


def replies_of(client: Client, id: Any) -> Json:
    answer = client.wire.response(id)
    assert "result" in answer, answer
    return json.loads(text_of(answer["result"]))


def ask_once(client: Client, method: str, answer: Any = None, **options: Any) -> tuple[Json, Json]:
    """Call the asker and answer its one question: the params that the client got, and the script's replies."""
    id = client.start_tool("asker")
    request = client.asked(method)
    client.answer(request, answer, **options)
    return request.get("params", {}), replies_of(client, id)


@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize("revision", WITH_FORMS)
def test_a_form_is_asked_and_its_answer_reaches_the_script(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    asker(project, {"who": NAME})
    params, replies = ask_once(speak(revision, capabilities=FORM), "elicitation/create", accept(name="Zoë"))

    assert params["message"] == "Who are you?"
    assert replies == {"who": {"status": "answered", "result": accept(name="Zoë")}}


def test_the_author_learns_that_a_form_has_no_pattern(project: ProjectBuilder, speak: Speak) -> None:
    """MCP has none: an answer that does not match is accepted, and only the script can refuse it."""
    asker(project, {"who": form("Who are you?", name={"type": "string", "pattern": "^[a-z]+$"})})
    client = speak(WITH_FORMS[-1], capabilities=FORM)
    params, replies = ask_once(client, "elicitation/create", accept(name="123"))

    assert "pattern" not in params["requestedSchema"]["properties"]["name"]
    assert replies["who"]["status"] == "answered"
    eventually(lambda: "MCP forms don't support pattern" in client.wire.stderr)


@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_model_is_asked_and_its_answer_reaches_the_script(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    question = sample("Say hello", systemPrompt="Be brief", modelPreferences={"hints": [{"name": "small"}]})
    asker(project, {"text": question})
    params, replies = ask_once(speak(revision, capabilities=ALL), "sampling/createMessage", said("hello"))

    assert params == question["params"]
    assert replies["text"]["result"] == said("hello")


@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_roots_are_asked_for_in_the_middle_of_a_call(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    asker(project, {"roots": {"method": "roots/list"}})
    client = speak(revision, capabilities={"roots": {}})
    client.answer(client.asked("roots/list"), {"roots": []})  # that of the handshake
    _, replies = ask_once(client, "roots/list", {"roots": [{"uri": "file:///srv"}]})

    assert replies["roots"]["result"] == {"roots": [{"uri": "file:///srv"}]}


@pytest.mark.requirement("P-204", "G-ask-live")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_what_a_client_did_not_declare_is_not_asked(project: ProjectBuilder, speak: Speak, revision: str) -> None:
    asker(
        project,
        {"form": NAME, "url": url("?", "https://example.org"), "text": sample("?"), "r": {"method": "roots/list"}},
    )
    client = speak(revision)
    replies = replies_of(client, client.start_tool("asker"))

    assert {reply["status"] for reply in replies.values()} == {"unsupported"}
    assert not [message for message in client.wire.seen if "method" in message and "id" in message]


@pytest.mark.requirement("P-210", "G-ask-live")
def test_an_address_has_an_id_and_the_client_hears_when_it_is_done(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, {"in": url("Sign in", "https://example.org/in"), "other": url("No", "https://example.org/no")})
    client = speak("2025-11-25", capabilities=ALL)
    id = client.start_tool("asker")
    first, second = client.asked("elicitation/create"), client.asked("elicitation/create")
    client.answer(first, {"action": "accept"})
    client.answer(second, {"action": "decline"})
    replies = replies_of(client, id)

    assert first["params"]["url"] == "https://example.org/in"
    assert first["params"]["elicitationId"] != second["params"]["elicitationId"]
    assert replies["in"]["result"] == {"action": "accept"}
    done = client.wire.notices("notifications/elicitation/complete")
    assert [notice["params"] for notice in done] == [{"elicitationId": first["params"]["elicitationId"]}]
    assert client.wire.seen.index(done[0]) == len(client.wire.seen) - 2  # right before the response


@pytest.mark.requirement("G-ask-live")
def test_several_questions_of_one_round_are_open_at_the_same_time(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, {"who": NAME, "text": sample("?")})
    client = speak(capabilities=ALL)
    id = client.start_tool("asker")
    text, who = client.asked("sampling/createMessage"), client.asked("elicitation/create")
    client.answer(text, said("x"))
    client.answer(who, {"action": "decline"})

    assert replies_of(client, id) == {
        "who": {"status": "answered", "result": {"action": "decline"}},
        "text": {"status": "answered", "result": said("x")},
    }


@pytest.mark.requirement("G-ask-live")
def test_a_second_round_waits_for_the_first(project: ProjectBuilder, speak: Speak) -> None:
    """Two rounds at once took two slots and gave one back, so that the server ran dry."""
    body = f"{ASK}\nplaces = [post({{key: form(key, name=TEXT)}}) for key in 'ab']"
    project.python_tool("asker", f"{body}\nprint(json.dumps([read(place) for place in places]), end='')")
    project.tool("other", "echo here")
    client = speak(capabilities=FORM, max_concurrent_requests=1)
    for _ in range(2):
        id = client.start_tool("asker")
        for _ in "ab":
            request = client.asked("elicitation/create")
            client.answer(request, accept(name=request["params"]["message"]))
        first, second = json.loads(text_of(client.wire.response(id)["result"]))
        assert first["a"]["result"]["content"] == {"name": "a"}
        assert second["b"]["result"]["content"] == {"name": "b"}

    assert text_of(client.call_tool("other")) == "here\n"


@ways.cheapest(answer=[{"action": "cancel"}, {}])
@pytest.mark.requirement("P-211", "G-ask-live")
@pytest.mark.parametrize(
    ("answer", "error", "reply"),
    [
        ({"action": "decline"}, None, {"status": "answered", "result": {"action": "decline"}}),
        ({"action": "cancel"}, None, {"status": "answered", "result": {"action": "cancel"}}),
        (None, {"code": -1, "message": "no dialog"}, {"status": "error", "message": "no dialog"}),
        (None, {"code": -32601, "message": "what?"}, {"status": "unsupported", "message": "what?"}),
        ({"action": "shrug"}, None, "its action must be one of"),
        (accept(name=5), None, "name"),
        ({}, None, "action"),
    ],
    ids=str,
)
def test_the_script_learns_how_its_question_ended(
    project: ProjectBuilder, speak: Speak, answer: Any, error: Any, reply: Any
) -> None:
    asker(project, {"who": NAME})
    _, replies = ask_once(speak(capabilities=FORM), "elicitation/create", answer, error=error)

    if isinstance(reply, str):
        assert replies["who"]["status"] == "error" and reply in replies["who"]["message"]
    else:
        assert replies["who"] == reply


UNREADABLE = {
    "NaN": b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"name":NaN}}}',
    "id last": b'{"result":{"action":"accept","content":{"name":Infinity}},"id":%d,"jsonrpc":"2.0"}',
    "broken": b'{"jsonrpc":"2.0","id":%d,"result":{"action":',
    "too long": b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"name":"' + b"x" * 99_999 + b'"}}}',
}


@ways.cheapest(case=["NaN"])
@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize("case", UNREADABLE)
def test_an_answer_that_cannot_be_read_ends_its_question(project: ProjectBuilder, speak: Speak, case: str) -> None:
    """It was not matched to its question, so that the call waited until its time was over."""
    asker(project, {"who": NAME})
    client = speak(capabilities=FORM, max_line_bytes=50_000)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    client.wire.send_bytes(UNREADABLE[case] % request["id"] + b"\n")
    reply = replies_of(client, id)["who"]

    assert reply["status"] == "error"
    assert "The client's answer cannot be read" in reply["message"]


@pytest.mark.requirement("P-211", "G-ask-live")
def test_without_an_answer_in_time_the_script_goes_on_and_the_client_is_told(
    project: ProjectBuilder, speak: Speak
) -> None:
    asker(project, {"who": NAME}, more=", timeoutSecs=0.1")
    client = speak(capabilities=FORM)
    replies = replies_of(client, client.start_tool("asker"))
    request, withdrawn = client.asked("elicitation/create"), client.wire.notice("notifications/cancelled")

    assert replies["who"]["status"] == "timeout"
    assert withdrawn["params"]["requestId"] == request["id"]


@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"k": {"method": "tools/call"}}, "k: its method must be one of"),
        ({"k": form("?", odd={"type": "object"})}, "k: field odd must have one of the types"),
        ({"k": sample("?", temperature="INF")}, "a number is out of range"),
        ({"question": form("?", odd={"type": "object"})}, "The question is invalid: field odd must have one"),
    ],
)
def test_what_makes_no_sense_is_an_error_of_the_script(
    project: ProjectBuilder, speak: Speak, asked: Json, message: str
) -> None:
    questions = repr(asked).replace("'INF'", "float('1e999')")
    body = ASK.replace("json.dumps(line)", "json.dumps(line).replace('Infinity', '1e999')")
    project.python_tool("asker", f"{body}\nprint(json.dumps(ask({questions})), end='')")
    client = speak(capabilities=ALL)
    [reply] = replies_of(client, client.start_tool("asker")).values()

    assert reply["status"] == "invalid" and message in reply["message"]


@ways.per_call("files")
@pytest.mark.requirement("G-ask-live")
@pytest.mark.parametrize("place", ["/tmp/elsewhere", "$MCP_ASK_REPLY/../x", "$MCP_ASK_REPLY\\u0000", "", "5"])
def test_an_answer_is_written_only_where_answers_belong(project: ProjectBuilder, speak: Speak, place: str) -> None:
    line = json.dumps({"ask": {"k": NAME}, "reply": "PLACE"}).replace("PLACE", "%s")
    project.tool("asker", f"""printf '{line}\\n' "{place}" > "$MCP_PROGRESS_STREAM"; echo done""")
    client = speak(capabilities=FORM)

    assert text_of(client.call_tool("asker")) == "done\n"
    assert not client.wire.notices("elicitation/create")
    eventually(lambda: "ignored a question from a script" in client.wire.stderr)
    assert "Traceback" not in client.wire.stderr


@pytest.mark.requirement("G-ask-live")
def test_a_script_that_ends_with_its_question_open_takes_it_back(project: ProjectBuilder, speak: Speak) -> None:
    body = f"{ASK}\npost({{'who': form('?', name=TEXT)}})\nwait_for('asked')\nprint('gone', end='')"
    project.python_tool("asker", body)
    client = speak(capabilities=FORM)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    project.write("asked", "")

    assert text_of(client.wire.response(id)["result"]) == "gone"
    assert client.wire.notice("notifications/cancelled")["params"]["requestId"] == request["id"]


@pytest.mark.requirement("G-ask-live")
def test_a_cancelled_call_takes_its_question_back_and_ends(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("asker", f"{ASK}\nnote('pid', os.getpid())\nask({{'who': form('?', name=TEXT)}})")
    client = speak(capabilities=FORM)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    client.wire.notify("notifications/cancelled", {"requestId": id})

    assert client.wire.notice("notifications/cancelled")["params"]["requestId"] == request["id"]
    eventually(lambda: not is_alive(project.read("pid")))
    client.answer(request, accept(name="late"))
    assert not [message for message in client.wire.settle() if message.get("id") == id and "method" not in message]


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-ask-rest")
def test_time_stands_still_while_a_question_is_open(project: ProjectBuilder, speak: Speak, way: str) -> None:
    is_started = way == "resident"  # its start does not count
    asker(project, {"who": NAME}, timeoutSecs=0.5 if is_started else 2)
    project.tool("sleeper", f"sleep {0.8 if is_started else 2.5}")
    client = speak(capabilities=FORM)
    id = client.start_tool("asker")
    request = client.asked("elicitation/create")
    client.call_tool("sleeper")  # longer than the asker may take
    client.answer(request, accept(name="slow"))

    assert replies_of(client, id)["who"]["result"] == accept(name="slow")


@pytest.mark.requirement("G-ask-rest")
def test_a_script_that_waits_for_an_answer_leaves_its_slot_to_others(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, {"who": NAME})
    project.tool("other", "echo here")
    client = speak(capabilities=FORM, max_concurrent_requests=2)
    ids = [client.start_tool("asker") for _ in range(4)]
    requests = [client.asked("elicitation/create") for _ in ids]

    assert text_of(client.call_tool("other")) == "here\n"
    for request in requests:
        client.answer(request, accept(name="x"))
    assert all(replies_of(client, id)["who"]["status"] == "answered" for id in ids)


@pytest.mark.requirement("P-017", "G-needs")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_a_tool_that_needs_more_than_the_client_has_does_not_start(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.tool("needy", "touch started", needs=["elicitation.form", "sampling"])
    result = speak(revision, capabilities={"sampling": {}}).call_tool("needy")

    assert result["isError"]
    assert text_of(result) == "Tool 'needy' cannot run here: This needs a client with elicitation.form."
    assert not (project.root / "started").exists()


PRINTING = printing(NAME)


@pytest.mark.requirement("G-ask-printed")
def test_a_script_that_prints_questions_is_run_again_with_the_answers(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("printing", PRINTING)
    client = speak(capabilities=FORM)
    id = client.start_tool("printing")
    for name in ("a", "b"):
        client.answer(client.asked("elicitation/create"), accept(name=name))

    assert text_of(client.wire.response(id)["result"]) == "xx b"


@ways.cheapest(reason=["1 to 32 questions", "without NUL"])
@pytest.mark.requirement("G-ask-printed")
@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ({"inputRequests": {"k": {"method": "x"}}}, "k: its method must be one of"),
        ({"requestState": "x"}, "1 to 32 questions"),
        ({"inputRequests": {"k": NAME}, "requestState": 5}, "requestState must be a string"),
        ({"inputRequests": {"k": NAME}, "requestState": "a\0b"}, "without NUL"),
        ({"inputRequests": {"k": NAME}, "requestState": "\ud800"}, "bytes of UTF-8"),
        ({"inputRequests": {"k": NAME}, "requestState": "x" * 200_000}, "at most 100000 bytes"),
    ],
)
def test_printed_questions_that_cannot_be_asked_are_a_failure(
    project: ProjectBuilder, speak: Speak, printed: Json, reason: str
) -> None:
    project.write("printed.json", json.dumps({"resultType": "input_required", **printed}))
    project.tool("printing", "cat printed.json")
    result = speak(capabilities=FORM).call_tool("printing")

    assert result["isError"] and reason in text_of(result)


@pytest.mark.requirement("G-ask-printed")
def test_a_script_that_never_has_enough_is_stopped(project: ProjectBuilder, speak: Speak) -> None:
    printed = {"resultType": "input_required", "inputRequests": {"k": NAME}}
    project.tool("printing", f"echo '{json.dumps(printed)}'; echo x >> runs")
    client = speak(capabilities=FORM)
    id = client.start_tool("printing")
    for _ in range(10):
        client.answer(client.asked("elicitation/create"), accept(name="x"))
    result = client.wire.response(id)["result"]

    assert result["isError"] and "10 times" in text_of(result)
    assert project.read("runs").count("x") == 10


@pytest.mark.requirement("G-ask-elsewhere")
def test_a_prompt_program_asks(project: ProjectBuilder, speak: Speak) -> None:
    body = f"#!{sys.executable}\n{ASK}\nreply = ask({{'who': form('?', name=TEXT)}})['who']"
    project.prompt("letter.py", f"{body}\nprint('Dear', reply['result']['content']['name'])")
    client = speak(capabilities=FORM)
    id = client.start("prompts/get", {"name": "letter"})
    client.answer(client.asked("elicitation/create"), accept(name="Zoë"))

    assert client.wire.response(id)["result"]["messages"][0]["content"]["text"] == "Dear Zoë"


@pytest.mark.requirement("G-ask-elsewhere")
def test_a_provider_asks_and_leaves_no_file(project: ProjectBuilder, speak: Speak, tmp_path: Path) -> None:
    body = f"#!{sys.executable}\n{ASK}\nreply = ask({{'who': form('?', name=TEXT)}})['who']"
    project.provider("people.py", f"{body}\nprint(sys.argv[1], reply['result']['content']['name'], end='')")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    client = speak(capabilities=FORM, env={"TMPDIR": str(scratch)})
    id = client.start("resources/read", {"uri": "people://x"})
    client.answer(client.asked("elicitation/create"), accept(name="Zoë"))

    assert client.wire.response(id)["result"]["contents"][0]["text"] == "people://x Zoë"
    assert not list(scratch.glob("mcpgreen.state.*/*"))


@pytest.mark.requirement("G-ask-elsewhere")
def test_a_provider_that_is_cancelled_while_it_asks_leaves_nothing(
    project: ProjectBuilder, speak: Speak, tmp_path: Path
) -> None:
    body = f"#!{sys.executable}\n{ASK}\nnote('pid', os.getpid())\nask({{'who': form('?', name=TEXT)}})"
    project.provider("people.py", body)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    client = speak(capabilities=FORM, env={"TMPDIR": str(scratch)})
    id = client.start("resources/read", {"uri": "people://x"})
    request = client.asked("elicitation/create")
    client.wire.notify("notifications/cancelled", {"requestId": id})

    assert client.wire.notice("notifications/cancelled")["params"]["requestId"] == request["id"]
    eventually(lambda: not is_alive(project.read("pid")) and not list(scratch.glob("mcpgreen.state.*/*")))


LETTER = {
    "inputRequests": {
        "who": form("To whom?", name={"type": "string"}, colours={"type": "array", "items": {"enum": ["red", "blue"]}}),
        "joke": sample("Tell a joke"),
    }
}


@pytest.mark.requirement("G-ask-elsewhere")
def test_answers_to_the_questions_of_a_prompt_become_arguments(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("letter.txt", "Dear {{name}}, {{joke}} ({{colours}})", meta=LETTER)
    client = speak(capabilities=ALL)
    id = client.start("prompts/get", {"name": "letter"})
    client.answer(client.asked("elicitation/create"), accept(name="Zoë", colours=["red", "blue"]))
    client.answer(client.asked("sampling/createMessage"), said("ha"))

    assert client.wire.response(id)["result"]["messages"][0]["content"]["text"] == "Dear Zoë, ha (red, blue)"


@pytest.mark.requirement("G-ask-elsewhere")
@pytest.mark.parametrize(
    ("answer", "error", "code", "reason"),
    [
        ({"action": "decline"}, None, -32602, "the user declined to answer (who)"),
        ({"action": "cancel"}, None, -32602, "the user dismissed the question (who)"),
        (None, {"code": -1, "message": "no dialog"}, -32603, "no dialog"),
    ],
)
def test_a_prompt_without_its_answers_is_an_error(
    project: ProjectBuilder, speak: Speak, answer: Any, error: Any, code: int, reason: str
) -> None:
    project.prompt("letter.txt", "Dear {{name}}", inputRequests={"who": NAME})
    client = speak(capabilities=FORM)
    id = client.start("prompts/get", {"name": "letter"})
    client.answer(client.asked("elicitation/create"), answer, error=error)
    refusal = client.wire.response(id)["error"]

    assert refusal["code"] == code and reason in refusal["message"]


@pytest.mark.requirement("G-ask-elsewhere")
def test_a_prompt_whose_questions_cannot_be_asked_of_anybody_is_left_out(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("good.txt", "x")
    project.prompt("odd.txt", "x", inputRequests={"who": {"method": "elicitation/create"}})
    client = speak()

    assert [each["name"] for each in client.result("prompts/list")["prompts"]] == ["good"]
    eventually(lambda: "inputRequests is invalid: who: it needs a message" in client.wire.stderr)
