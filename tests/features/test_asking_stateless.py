"""Scripts that ask stateless clients: parked between rounds, gone on with once, run anew only where that is safe."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import ways
from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ALL, ASK, FORM, ROOTS, Talk, accept, form, printing, said, sample, url
from tests.support.waiting import eventually, is_alive
from tests.support.wire import MODERN, Json, text_of

way, project = ways.way, ways.project

NAME = form("Who?", name={"type": "string", "minLength": 1})
EXPIRED = "This interaction has expired; start again without requestState."

# Acts, asks, and says what it was told; each start and each act leaves a line.
ACTS_FIRST = (
    f"{ASK}\nnote('acts')\nnote('pid', os.getpid())\nreply = ask({{'who': {NAME!r}}})['who']\nprint(json.dumps(reply))"
)


@pytest.fixture
def client(speak: Speak) -> Client:
    return speak(MODERN, capabilities=ALL)


def asker(project: ProjectBuilder, questions: Json, *, name: str = "asker", **fields: Any) -> None:
    project.python_tool(name, f"{ASK}\nprint(json.dumps(ask({questions!r})), end='')", **fields)


def replies_in(result: Json) -> Json:
    assert result.get("resultType") == "complete", result
    return json.loads(text_of(result))


@pytest.mark.requirement("P-200", "P-201", "P-202", "P-208")
def test_the_client_gets_the_questions_and_its_retry_the_result(project: ProjectBuilder, client: Client) -> None:
    asker(project, {"who": NAME, "text": sample("Hello?")})
    talk = Talk(client, name="asker")
    asked = talk.begin()
    result = talk.answer(accept(name="Zoë"), said("hi"))

    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"] == {"who": NAME, "text": sample("Hello?")}
    assert asked.keys() <= {"resultType", "inputRequests", "requestState", "_meta"}  # nothing that may be cached
    assert replies_in(result) == {
        "who": {"status": "answered", "result": accept(name="Zoë")},
        "text": {"status": "answered", "result": said("hi")},
    }


@pytest.mark.requirement("G-parked")
def test_a_script_that_acts_before_it_asks_acts_once(project: ProjectBuilder, client: Client) -> None:
    project.python_tool("asker", ACTS_FIRST)
    talk = Talk(client, name="asker").begun()
    result = talk.answer(accept(name="x"))

    assert replies_in(result)["result"] == accept(name="x")
    assert project.read("acts") == "\n"


@pytest.mark.requirement("P-207", "P-203")
def test_there_may_be_many_rounds_each_with_keys_of_its_own(project: ProjectBuilder, client: Client) -> None:
    body = f"{ASK}\nsaid = [ask({{'who': form('?', name=TEXT)}})['who']['result']['content']['name'] for _ in '1234']"
    project.python_tool("asker", f"{body}\nprint(''.join(said), end='')")
    talk = Talk(client, name="asker").begun()
    keys = set(talk.asked)
    for name in "abc":
        talk.answer(accept(name=name))
        keys |= set(talk.asked)

    assert text_of(talk.answer(accept(name="d"))) == "abcd"
    assert len(keys) == 4


@pytest.mark.requirement("P-203", "G-parked")
def test_a_second_round_waits_for_the_first(project: ProjectBuilder, client: Client) -> None:
    """It was sent as a second answer to the same request."""
    body = f"{ASK}\nplaces = [post({{key: form(key, name=TEXT)}}) for key in 'ab']"
    project.python_tool("asker", f"{body}\nprint(json.dumps([read(place) for place in places]), end='')")
    talk = Talk(client, name="asker")
    assert list(talk.begin()["inputRequests"]) == ["a"]
    assert list(talk.answer(accept(name="A"))["inputRequests"]) == ["b"]
    first, second = json.loads(text_of(talk.answer(accept(name="B"))))

    assert (first["a"]["result"], second["b"]["result"]) == (accept(name="A"), accept(name="B"))


@ways.cheapest(action=["decline"])
@pytest.mark.requirement("P-211")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_the_script_learns_that_the_person_does_not_want_to(
    project: ProjectBuilder, client: Client, action: str
) -> None:
    asker(project, {"who": NAME, "in": url("?", "https://example.org")})
    talk = Talk(client, name="asker").begun()
    replies = replies_in(talk.answer({"action": action}, {"action": action}))

    assert [reply["result"] for reply in replies.values()] == [{"action": action}] * 2


@ways.cheapest(declared=[{}])
@pytest.mark.requirement("P-204")
@pytest.mark.parametrize("declared", [{}, {"elicitation": {"url": {}}}, {"sampling": {"tools": {}}}])
def test_what_this_request_did_not_declare_is_not_asked(project: ProjectBuilder, speak: Speak, declared: Json) -> None:
    asker(project, {"who": NAME})
    replies = replies_in(Talk(speak(MODERN, capabilities=declared), name="asker").begin())

    assert replies == {"who": {"status": "unsupported", "message": "The client does not support elicitation.form."}}


@pytest.mark.requirement("P-204")
def test_a_question_that_is_still_open_is_not_put_to_a_client_that_cannot_answer_it(
    project: ProjectBuilder, speak: Speak
) -> None:
    asker(project, {"who": NAME})
    client = speak(MODERN, capabilities=FORM)
    talk = Talk(client, name="asker").begun()
    client.capabilities = {}
    refusal = talk.come_back({})
    client.capabilities = FORM

    assert (refusal["code"], refusal["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {"form": {}}}})
    assert replies_in(talk.answer(accept(name="x")))["who"]["status"] == "answered"


@pytest.mark.requirement("P-017", "G-needs")
def test_a_tool_that_needs_more_than_the_request_declares_does_not_start(
    project: ProjectBuilder, client: Client
) -> None:
    project.tool("needy", "touch started", needs=["elicitation.form", "roots", "sampling"])
    refusal = client.error("tools/call", {"name": "needy"})

    assert refusal["code"] == -32021
    assert refusal["data"] == {"requiredCapabilities": {"roots": {}}}
    assert not (project.root / "started").exists()


@pytest.mark.requirement("P-207", "G-parked")
def test_what_is_missing_or_does_not_fit_is_asked_again(project: ProjectBuilder, client: Client) -> None:
    asker(project, {"a": NAME, "b": NAME, "c": NAME})
    talk = Talk(client, name="asker").begun()
    first_state = talk.state
    again = talk.come_back({"a": accept(name="A"), "b": accept(name=""), "unknown": accept(name="U")})

    assert list(again["inputRequests"]) == ["b", "c"]
    assert "The last answer was not valid: " in again["inputRequests"]["b"]["params"]["message"]
    assert again["inputRequests"]["c"] == NAME
    assert talk.state != first_state
    assert list(talk.come_back({"b": accept(name="B"), "c": 5})["inputRequests"]) == ["c"]
    replies = replies_in(talk.come_back({"c": accept(name="C"), "a": accept(name="other")}))
    assert [reply["result"]["content"]["name"] for reply in replies.values()] == ["A", "B", "C"]


@ways.cheapest(responses=["x"])
@pytest.mark.parametrize("responses", [[], "x", 5, None, True])
def test_responses_that_are_no_object_are_refused_and_cost_nothing(
    project: ProjectBuilder, client: Client, responses: Any
) -> None:
    asker(project, {"who": NAME})
    talk = Talk(client, name="asker").begun()

    assert talk.come_back(responses)["code"] == -32602
    assert replies_in(talk.answer(accept(name="x")))["who"]["status"] == "answered"


def tampered(state: str) -> str:
    version, body, mac = state.split(".")
    payload = json.loads(base64.urlsafe_b64decode(body + "=="))
    payload["memo"] = {"who": accept(name="root")}
    forged = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    return f"{version}.{forged}.{mac}"


@ways.cheapest(bad=[tampered])
@pytest.mark.requirement("P-205")
@pytest.mark.parametrize("bad", [tampered, lambda state: state[:-4] + "AAAA", lambda state: "", lambda state: 5])
def test_a_state_that_was_tampered_with_is_refused_and_the_true_one_still_works(
    project: ProjectBuilder, client: Client, bad: Callable[[str], Any]
) -> None:
    project.python_tool("asker", ACTS_FIRST)
    talk = Talk(client, name="asker").begun()
    refusal = talk.come_back({"who": accept(name="x")}, state=bad(talk.state))

    assert (refusal["code"], refusal["message"]) == (-32602, "Invalid requestState")
    eventually(lambda: "rejected a request state" in client.wire.stderr)
    assert replies_in(talk.answer(accept(name="x")))["status"] == "answered"
    assert project.read("acts") == "\n"


@ways.cheapest(method=["prompts/get"])
@pytest.mark.requirement("P-205")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "other", "arguments": {"a": 1, "b": 2}}),
        ("tools/call", {"name": "asker", "arguments": {"a": 1, "b": 3}}),
        ("tools/call", {"name": "asker"}),
        ("prompts/get", {"name": "asker", "arguments": {"a": 1, "b": 2}}),
        ("resources/read", {"uri": "echo://asker"}),
    ],
)
def test_a_state_of_another_request_is_refused(
    project: ProjectBuilder, client: Client, method: str, params: Json
) -> None:
    asker(project, {"who": NAME})
    asker(project, {"who": NAME}, name="other")
    project.prompt("asker.txt", "x")
    talk = Talk(client, name="asker", arguments={"a": 1, "b": 2}).begun()
    refusal = client.error(method, {**params, "requestState": talk.state, "inputResponses": {"who": accept(name="x")}})

    assert refusal["message"] == "Invalid requestState"
    talk.params = {"arguments": {"b": 2, "a": 1}, "name": "asker"}  # the order of keys does not matter
    assert replies_in(talk.answer(accept(name="x")))["who"]["status"] == "answered"


@pytest.mark.requirement("P-205")
def test_a_state_is_refused_where_nothing_asks(project: ProjectBuilder, client: Client) -> None:
    project.tool("plain", "echo plain")

    assert client.error("tools/call", {"name": "plain", "requestState": "v1.x.y"})["code"] == -32602


@pytest.mark.requirement("P-206")
def test_a_state_is_good_for_one_retry(project: ProjectBuilder, client: Client) -> None:
    project.python_tool("asker", ACTS_FIRST)
    talk = Talk(client, name="asker").begun()
    talk.answer(accept(name="x"))
    refusal = talk.answer(accept(name="y"))

    assert (refusal["code"], refusal["message"]) == (-32602, EXPIRED)
    assert project.read("acts") == "\n"


@pytest.mark.requirement("P-206")
def test_of_two_retries_at_once_one_goes_on(project: ProjectBuilder, client: Client) -> None:
    project.python_tool("asker", ACTS_FIRST)
    talk = Talk(client, name="asker").begun()
    ids = [client.start("tools/call", talk.retry_params({"who": accept(name=name)})) for name in "ab"]
    answers = [client.wire.response(id) for id in ids]

    assert sorted("error" in answer for answer in answers) == [False, True]
    assert project.read("acts") == "\n"


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("P-205", "G-parked")
def test_a_state_expires_with_its_script(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("asker", ACTS_FIRST, annotations={"readOnlyHint": True})
    client = speak(MODERN, capabilities=FORM, PARKED_SECS=1)
    talk = Talk(client, name="asker").begun()
    pid = project.read("pid")
    eventually(lambda: not is_alive(pid))

    def refusal() -> Any:
        answer = talk.answer(accept(name="x"))
        return answer if answer.get("code") == -32602 else None

    assert eventually(refusal)["message"] == "Invalid requestState"


REPLAYABLE = [
    {"annotations": {"readOnlyHint": True}},
    {"annotations": {"idempotentHint": True}},
    {"interaction": "replay"},
]
ONCE_ONLY: list[Json] = [{}, {"interaction": "park", "annotations": {"readOnlyHint": True}}]


@ways.cheapest(fields=REPLAYABLE[:1])
@pytest.mark.requirement("G-replay")
@pytest.mark.parametrize("fields", REPLAYABLE, ids=str)
def test_a_tool_that_may_be_repeated_is_run_anew_with_the_answers(
    project: ProjectBuilder, speak: Speak, fields: Json
) -> None:
    body = f"{ASK}\nnote('acts')\nnote('pid', os.getpid())\n"
    body += f"print(json.dumps([ask({{'q1': {NAME!r}}}), ask({{'q2': {NAME!r}}})]), end='')"
    project.python_tool("asker", body, **fields)
    client = speak(MODERN, capabilities=FORM, MAX_PARKED=1)
    talk = Talk(client, name="asker").begun()
    talk.answer(accept(name="one"))
    Talk(client, name="asker", arguments={"x": 1}).begin()  # which drives the first away
    first, second = json.loads(text_of(talk.answer(accept(name="two"))))

    assert first["q1"]["result"] == accept(name="one")
    assert second["q2"]["result"] == accept(name="two")
    assert project.read("acts") == "\n" * 3


@pytest.mark.requirement("G-replay")
@pytest.mark.parametrize("fields", ONCE_ONLY, ids=str)
def test_any_other_tool_is_not_run_anew(project: ProjectBuilder, speak: Speak, fields: Json) -> None:
    project.python_tool("asker", ACTS_FIRST, **fields)
    client = speak(MODERN, capabilities=FORM, MAX_PARKED=1)
    talk = Talk(client, name="asker").begun()
    Talk(client, name="asker", arguments={"x": 1}).begin()
    refusal = talk.answer(accept(name="x"))

    assert (refusal["code"], refusal["message"]) == (-32602, EXPIRED)
    assert project.read("acts") == "\n" * 2


@pytest.mark.requirement("G-replay")
def test_an_answer_does_not_land_on_another_question_of_the_repetition(project: ProjectBuilder, speak: Speak) -> None:
    body = f"""{ASK}
note('runs')
with open(os.path.join(os.environ['MCPGREEN_PROJECT_ROOT'], 'runs')) as file:
    number = len(file.read())
ask({{'q1': form(f'Erase {{number}}?', sure={{'type': 'boolean'}})}})
"""
    project.python_tool("asker", body, interaction="replay")
    client = speak(MODERN, capabilities=FORM, MAX_PARKED=1)
    talk = Talk(client, name="asker").begun()
    Talk(client, name="asker", arguments={"x": 1}).begin()
    again = talk.answer(accept(sure=True))

    assert [each["params"]["message"] for each in again["inputRequests"].values()] == ["Erase 3?"]


@pytest.mark.requirement("G-replay")
@pytest.mark.parametrize(("interaction", "is_run"), [("auto", True), ("replay", True), ("park", False)])
def test_a_request_may_bring_answers_before_it_is_asked(
    project: ProjectBuilder, client: Client, interaction: str, is_run: bool
) -> None:
    asker(project, {"who": NAME}, interaction=interaction)
    result = Talk(client, name="asker").come_back({"who": accept(name="x"), "odd": 5})

    assert (result["resultType"] == "complete") is is_run


@pytest.mark.requirement("G-replay")
@pytest.mark.parametrize(("keys", "goes_on"), [(("same", "same"), True), (("one", "other"), False)])
def test_servers_with_one_key_go_on_for_each_other(
    project: ProjectBuilder, speak: Speak, keys: tuple[str, str], goes_on: bool
) -> None:
    asker(project, {"who": NAME}, annotations={"readOnlyHint": True})
    first, second = (speak(MODERN, capabilities=FORM, state_key=key) for key in keys)
    talk = Talk(first, name="asker").begun()
    first.wire.stop()
    talk.client = second
    answer = talk.answer(accept(name="x"))

    if goes_on:
        assert replies_in(answer)["who"]["result"] == accept(name="x")
    else:
        assert answer["message"] == "Invalid requestState"


@pytest.mark.requirement("G-replay")
def test_the_key_is_hidden_from_scripts(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("spy", "env")

    assert "very-secret" not in text_of(speak(MODERN, state_key="very-secret").call_tool("spy"))


@pytest.mark.requirement("P-208", "P-209")
def test_progress_and_logs_go_to_the_request_that_is_open(project: ProjectBuilder, client: Client) -> None:
    body = f"""{ASK}
def report(step):
    control({{"method": "notifications/progress", "params": {{"progress": step}}}})
    control({{"method": "notifications/message", "params": {{"level": "info", "data": step}}}})
report(1)
place = post({{"who": {NAME!r}}})
wait_for("parked")
report(2)
read(place)
report(3)
"""
    project.python_tool("asker", body)
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    talk = Talk(client, name="asker")
    talk.begin(meta={"progressToken": "first", **level})
    answered_at = len(client.wire.seen)
    project.write("parked", "")
    talk.answer(accept(name="x"), meta={"progressToken": "second", **level})

    def told(messages: list[Json]) -> list[Any]:
        params = [message["params"] for message in messages if "method" in message]
        return [(each.get("progressToken"), each.get("progress", each.get("data"))) for each in params]

    assert told(client.wire.seen[:answered_at]) == [("first", 1), (None, 1)]
    # What the script said while nobody was there may have been read before or after the retry.
    assert [each for each in told(client.wire.seen[answered_at:]) if each[1] != 2] == [("second", 3), (None, 3)]
    assert ("first", 2) not in told(client.wire.seen)


@pytest.mark.requirement("P-209", "G-parked")
def test_a_script_that_ends_while_parked_keeps_its_result_for_the_retry(
    project: ProjectBuilder, client: Client
) -> None:
    body = f"{ASK}\npost({{'who': {NAME!r}}})\nwait_for('parked')\nprint('done', end='')"
    project.python_tool("asker", body)
    talk = Talk(client, name="asker").begun()
    project.write("parked", "")
    # Until the server has noticed, it asks again.
    result = eventually(lambda: (answer := talk.come_back({})).get("content") and answer)

    assert text_of(result) == "done"
    assert talk.come_back({})["message"] == EXPIRED


@pytest.mark.requirement("G-parked")
def test_a_retry_that_is_cancelled_ends_the_script(project: ProjectBuilder, client: Client) -> None:
    body = f"{ASK}\nnote('pid', os.getpid())\nask({{'who': {NAME!r}}})\nnote('going')\ntime.sleep(60)"
    project.python_tool("asker", body)
    talk = Talk(client, name="asker").begun()
    id = client.start("tools/call", talk.retry_params({"who": accept(name="x")}))
    eventually((project.root / "going").exists)
    client.wire.notify("notifications/cancelled", {"requestId": id})

    eventually(lambda: not is_alive(project.read("pid")))
    client.result("tools/list")
    assert not [message for message in client.wire.seen if message.get("id") == id]


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-ask-rest")
def test_parked_scripts_leave_their_slots_and_their_time_stands_still(
    project: ProjectBuilder, speak: Speak, way: str
) -> None:
    is_started = way == "resident"  # its start does not count
    asker(project, {"who": NAME}, timeoutSecs=0.5 if is_started else 2)
    project.tool("other", f"sleep {0.8 if is_started else 2.5}; echo here")
    client = speak(MODERN, capabilities=FORM, max_concurrent_requests=2)
    talks = [Talk(client, name="asker", arguments={"n": number}) for number in range(4)]
    for talk in talks:
        talk.begin()

    assert text_of(client.call_tool("other")) == "here\n"  # longer than an asker may take
    assert all(replies_in(talk.answer(accept(name="x")))["who"]["status"] == "answered" for talk in talks)


@pytest.mark.requirement("G-parked")
def test_one_more_than_may_be_parked_drives_the_oldest_away(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("asker", ACTS_FIRST)
    client = speak(MODERN, capabilities=FORM, MAX_PARKED=3)
    talks = [Talk(client, name="asker", arguments={"n": number}) for number in range(4)]
    for talk in talks:
        talk.begin()
    pids = project.read("pid").split()

    eventually(lambda: [is_alive(pid) for pid in pids].count(False) == 1)
    assert talks[0].answer(accept(name="x"))["message"] == EXPIRED
    assert all(replies_in(talk.answer(accept(name="x")))["status"] == "answered" for talk in talks[1:])


@ways.cheapest(way=["resident"])
@pytest.mark.requirement("G-parked")
def test_a_server_with_something_parked_is_not_idle(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("asker", ACTS_FIRST)
    client = speak(MODERN, capabilities=FORM, idle_timeout_secs=0.2)
    talk = Talk(client, name="asker").begun()
    with pytest.raises(subprocess.TimeoutExpired):
        client.wire.wait(within_secs=1)

    assert replies_in(talk.answer(accept(name="x")))["status"] == "answered"


PRINTING = printing(NAME)


@pytest.mark.requirement("G-ask-printed", "P-205")
def test_printed_questions_go_to_the_client_with_a_sealed_state(project: ProjectBuilder, client: Client) -> None:
    project.python_tool("printing", PRINTING)
    talk = Talk(client, name="printing")
    asked = talk.begin()
    assert asked["inputRequests"] == {"who": NAME} and asked["requestState"] != "x"
    assert talk.come_back({"who": accept(name="")})["inputRequests"].keys() == {"who"}
    assert talk.come_back({"who": accept(name="a")}, state="x")["code"] == -32602
    talk.answer(accept(name="a"))

    assert text_of(talk.answer(accept(name="b"))) == "xx b"


@pytest.mark.requirement("G-ask-printed")
def test_printed_questions_that_the_client_cannot_be_asked_are_a_failure(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("printing", PRINTING)
    result = speak(MODERN).call_tool("printing")

    assert (result["isError"], text_of(result)) == (
        True,
        "Tool 'printing' cannot run here: This needs a client with elicitation.form.",
    )


@ways.per_call("files")
@pytest.mark.requirement("G-ask-printed")
def test_long_answers_reach_a_printing_script_as_a_file(project: ProjectBuilder, client: Client) -> None:
    body = (
        PRINTING.replace(
            'os.environ.get("MCP_INPUT_RESPONSES_JSON") or "{}"',
            'open(os.environ["MCP_INPUT_RESPONSES_FILE"]).read() if "MCP_INPUT_RESPONSES_FILE" in os.environ else "{}"',
        )
        .replace("< 2", "< 1")
        .replace('["name"]', '["name"][-3:]')
    )
    project.python_tool("printing", body)
    talk = Talk(client, name="printing").begun()

    assert text_of(talk.answer(accept(name="x" * 300_000 + "end"))) == "x end"


@pytest.mark.requirement("P-200", "G-ask-elsewhere")
def test_the_questions_of_a_prompt_are_asked(project: ProjectBuilder, client: Client) -> None:
    project.prompt("letter.txt", "Dear {{name}}", inputRequests={"who": NAME})
    talk = Talk(client, "prompts/get", name="letter")

    assert talk.begin()["inputRequests"] == {"who": NAME}
    assert talk.come_back({})["inputRequests"] == {"who": NAME}
    assert talk.answer(accept(name="Zoë"))["messages"][0]["content"]["text"] == "Dear Zoë"
    assert talk.answer({"action": "decline"})["code"] == -32602


@pytest.mark.requirement("P-200", "G-ask-elsewhere")
def test_a_prompt_program_and_a_provider_are_parked(project: ProjectBuilder, client: Client) -> None:
    body = f"#!{sys.executable}\n{ASK}\nnote('acts')\nreply = ask({{'who': {NAME!r}}})['who']"
    project.prompt("letter.py", f"{body}\nprint('Dear', reply['result']['content']['name'])")
    project.provider("people.py", f"{body}\nprint(sys.argv[1], reply['result']['content']['name'], end='')")
    letter = Talk(client, "prompts/get", name="letter").begun()
    person = Talk(client, "resources/read", uri="people://x").begun()

    assert letter.answer(accept(name="Zoë"))["messages"][0]["content"]["text"] == "Dear Zoë"
    assert person.answer(accept(name="Zoë"))["contents"][0]["text"] == "people://x Zoë"
    assert project.read("acts") == "\n\n"


@pytest.mark.requirement("P-204")
def test_roots_are_asked_for_as_anything_else(project: ProjectBuilder, speak: Speak) -> None:
    asker(project, {"roots": {"method": "roots/list"}})
    talk = Talk(speak(MODERN, capabilities=ROOTS), name="asker")
    assert talk.begin()["inputRequests"] == {"roots": {"method": "roots/list", "params": {}}}

    assert replies_in(talk.answer({"roots": [{"uri": "file:///srv"}]}))["roots"]["result"]["roots"]
