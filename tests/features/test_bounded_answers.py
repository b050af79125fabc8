"""Whatever a script or a client says, what leaves the server has its bounds, and nobody else waits for it."""

from __future__ import annotations

import base64
import json
import time

import pytest

from tests.support import ways
from tests.support.client import Client, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import Json, text_of

way, project = ways.way, ways.project

MIB = 1 << 20
FILL = "head -c {} /dev/zero | tr '\\0' '\\1'"  # a character of which JSON makes six


def longest_line(client: Client) -> int:
    return max(map(len, client.wire.raw_lines))


@ways.per_call("files")
@ways.cheapest(kind=["a message"])
@pytest.mark.parametrize("kind", ["NULs", "a message", "data", "nested data"])
def test_an_error_that_a_script_chooses_is_cut(project: ProjectBuilder, speak: Speak, kind: str) -> None:
    """A file of 20 MiB became a reply of 96 MiB, whatever the limit of a response is."""
    content = {
        "NULs": "head -c 20000000 /dev/zero",
        "a message": f'printf \'{{"code":-32001,"message":"\'; {FILL.format(250_000)}; printf \'"}}\'',
        "data": f'printf \'{{"code":-32001,"message":"No.","data":"\'; {FILL.format(250_000)}; printf \'"}}\'',
        "nested data": f'printf \'{{"code":-32001,"message":"No.","data":["\'; {FILL.format(250_000)}; printf \'"]}}\'',
    }[kind]
    project.tool("fail", f'{{ {content}; }} > "$MCP_TOOL_ERROR_FILE"')
    client = speak()
    error = client.error("tools/call", {"name": "fail"})

    assert error["code"] == (-32603 if kind == "NULs" else -32001)
    assert longest_line(client) < MIB


def test_what_a_client_says_does_not_come_back_longer(project: ProjectBuilder, speak: Speak) -> None:
    client = speak()
    name = "\x01" * 3_000_000
    client.wire.send_bytes(
        json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "X"}})
        .replace("X", name)
        .encode()
        + b"\n"
    )
    error = client.wire.response(7)["error"]

    assert error["code"] == -32602
    assert longest_line(client) < MIB


def test_an_id_that_is_too_long_is_none(speak: Speak) -> None:
    client = speak()
    client.wire.send({"jsonrpc": "2.0", "id": "x" * 70_000, "method": "ping"})
    answer = client.wire.receive(lambda message: "error" in message)

    assert "id" not in answer
    assert answer["error"]["code"] == -32600


@ways.per_call("output")
@ways.cheapest(beginning=["{"], exit_code=[0])
@pytest.mark.parametrize("beginning", ["", "{", "["])
@pytest.mark.parametrize("exit_code", [0, 1])
def test_output_that_is_too_long_as_json_is_refused(
    project: ProjectBuilder, speak: Speak, beginning: str, exit_code: int
) -> None:
    project.tool("say", f"printf '{beginning}'; {FILL.format(4_000_000)}; exit {exit_code}")
    error = speak(LEAST_RESPONSE_BYTES=10 * MIB, RESPONSE_FACTOR=1).error("tools/call", {"name": "say"})

    assert error == {"code": -32603, "message": "Response exceeded response size limit (10485760 bytes)"}


@ways.per_call("output")
@ways.cheapest(line=["a line"])
@pytest.mark.parametrize("line", ["", "a line", "строка"], ids=["empty lines", "ASCII", "Cyrillic"])
def test_what_a_script_may_print_also_fits_into_a_response(project: ProjectBuilder, speak: Speak, line: str) -> None:
    """Ten megabytes of lines are more as JSON, and the limit of the one was that of the other."""
    size_bytes = len(line.encode()) + 1
    lines = 9_900_000 // size_bytes
    project.tool("say", f"yes '{line}' | head -n {lines}")

    assert text_of(speak().call_tool("say")) == f"{line}\n" * lines


def test_others_are_answered_while_the_output_of_a_failed_script_is_cleaned(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.python_tool("say", "import sys; print('token /usr/x ' * 20_000); sys.exit(1)")
    client = speak()
    client.request("ping")

    # Of several calls, since a busy machine holds up some pings as well.
    assert min(_longest_share_of_a_ping(client) for _ in range(8)) < 0.5


def _longest_share_of_a_ping(client: Client) -> float:
    """How much of the time of a call went by while its client waited for one ping."""
    began_at, id = time.monotonic(), client.start_tool("say")
    longest_secs = 0.0
    while not any(message.get("id") == id for message in client.wire.seen):
        asked_at = time.monotonic()
        client.request("ping")
        longest_secs = max(longest_secs, time.monotonic() - asked_at)
    return longest_secs / (time.monotonic() - began_at)


def test_others_are_answered_while_long_output_is_written_as_json(project: ProjectBuilder, speak: Speak) -> None:
    """A few megabytes of rubbish held up everybody for a second."""
    project.python_tool("say", "import os; os.write(1, b'{'); [os.write(1, b'\\xfe\\xc3' * 500) for _ in range(8000)]")
    client = speak(LEAST_RESPONSE_BYTES=1 << 30)
    id = client.start_tool("say")
    while not any(message.get("id") == id for message in client.wire.seen):
        client.request("ping")

    answers = [message["id"] for message in client.wire.seen if "id" in message]
    assert answers.index(id) > 2


def test_log_and_progress_of_a_script_are_dropped_if_they_are_too_long(project: ProjectBuilder, speak: Speak) -> None:
    line = '{"method":"notifications/%s","params":{%s"\'; ' + FILL.format(700_000) + "; printf '\"}}\\n'"
    log = line % ("message", '"level":"error","data":')
    progress = line % ("progress", '"progress":1,"message":')
    project.tool("talk", f"{{ printf '{log}; printf '{progress}; }} >> \"$MCP_LOG_STREAM\"; echo done")
    client = speak()

    assert text_of(client.call_tool("talk", meta={"progressToken": 1})) == "done\n"
    assert longest_line(client) < MIB
    eventually(lambda: "is too long for the client" in client.wire.stderr)


def test_questions_that_are_too_long_are_not_asked(project: ProjectBuilder, speak: Speak) -> None:
    asked = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create", "params": {}}}}
    asked["inputRequests"]["q"]["params"] = {
        "message": "x" * 2 * MIB,
        "requestedSchema": {"type": "object", "properties": {}},
    }
    project.write("asked", json.dumps(asked))
    project.tool("ask", "cat asked")
    client = speak(capabilities={"elicitation": {}})
    result = client.call_tool("ask")

    assert "sent an invalid question" in text_of(result)
    assert longest_line(client) < MIB


def test_a_prompt_does_not_multiply_what_the_client_says(project: ProjectBuilder, speak: Speak) -> None:
    project.prompt("echo.txt", "{{x}}" * 5000)
    error = speak().error("prompts/get", {"name": "echo", "arguments": {"x": "y" * MIB}})

    assert error["code"] == -32603
    assert "longer than" in error["message"]


def test_a_page_of_a_list_ends_when_it_is_long_enough(project: ProjectBuilder, speak: Speak) -> None:
    for number in range(8):
        project.tool(f"t{number}", "echo", description="x" * 1000)
    client = speak(LEAST_RESPONSE_BYTES=3000, RESPONSE_FACTOR=0)
    names: list[str] = []
    page: Json = {"nextCursor": None}
    while "nextCursor" in page:
        page = client.result("tools/list", {"cursor": page["nextCursor"]} if page["nextCursor"] else {})
        names += [tool["name"] for tool in page["tools"]]

    assert names == [f"t{number}" for number in range(8)]
    assert longest_line(client) < 4000


def test_a_resource_that_is_mostly_control_characters_is_a_blob(project: ProjectBuilder, speak: Speak) -> None:
    content = b"\x01\x02" * 500_000
    project.resource("odd.txt", content)
    client = speak()
    listed = client.result("resources/list")["resources"]
    (read,) = client.result("resources/read", {"uri": listed[0]["uri"]})["contents"]

    assert base64.b64decode(read["blob"]) == content


def test_others_are_answered_while_a_large_resource_is_read(project: ProjectBuilder, speak: Speak) -> None:
    project.resource("large.txt", '"\\' * 4_000_000)
    client = speak()
    uri = client.result("resources/list")["resources"][0]["uri"]
    read, ping = client.start("resources/read", {"uri": uri}), client.start("ping")
    client.wire.response(ping)

    assert not any(message.get("id") == read for message in client.wire.seen)
    assert len(client.wire.response(read)["result"]["contents"][0]["text"]) == 8_000_000
