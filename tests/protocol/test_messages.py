"""JSON-RPC envelopes: which ids are valid, and that a line is always one line of JSON."""

from __future__ import annotations

import json

import pytest

from mcpgreen.protocol import messages
from mcpgreen.protocol.messages import ANSWER, END_BYTES, id_at_ends, ids_in


@pytest.mark.requirement("P-010")
def test_an_error_without_a_usable_id_has_no_id_member() -> None:
    line = messages.error(None, {"code": -32700, "message": "Parse error"})

    assert json.loads(line) == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}}


@pytest.mark.requirement("P-020")
@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\u2028\u2029\x85", "\x00"])
def test_a_message_never_holds_a_line_break(text: str) -> None:
    line = messages.notification("notifications/message", {"level": "info", "data": text})

    assert len(line.decode("utf-8").splitlines()) == 1
    assert json.loads(line)["params"]["data"] == text


@pytest.mark.requirement("P-115")
def test_a_lone_surrogate_does_not_reach_the_wire() -> None:
    line = messages.notification("notifications/message", {"level": "info", "data": "a\ud800b"})

    assert json.loads(line)["params"]["data"] == "a\ufffdb"


def test_a_notification_without_params_has_no_params_member() -> None:
    assert json.loads(messages.notification("x")) == {"jsonrpc": "2.0", "method": "x"}


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"%s"}}', 7),
        (b' { "jsonrpc" : "2.0" , "id" : "a-b" , "method" : "m" , "params": "%s" }\r', "a-b"),
        (b'{"id":-1,"jsonrpc":"2.0","method":"m","params":{"x":"%s"}}', -1),
        (b'{"method":"tools/call","params":{"x":"%s"},"jsonrpc":"2.0","id":12}', 12),
        (b'{"method":"tools/call","params":{"x":"%s"},"id":"z","jsonrpc":"2.0"}', "z"),
        (b'{"jsonrpc":"2.0","method":"m","params":{"x":"%s"},"id":0}', 0),
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"%s"}}', None),  # an answer
        (b'{"jsonrpc":"2.0","result":{"x":"%s"},"id":7}', None),
        (b'{"jsonrpc":"2.0","method":"m","params":{"x":"%s","id":7}}', None),  # an argument
        (b'{"jsonrpc":"2.0","method":"m","params":{"x":"%s,\\"id\\":7}', None),  # cut off in a text
        (b'{"jsonrpc":"2.0","id":7.5,"method":"m","params":{"x":"%s"}}', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"m","params":{"x":"%s"}}', None),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"m","params":{"x":"%s"}}', None),
        (b'[{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"%s"}}]', None),  # a batch
    ],
)
def test_the_id_of_a_request_is_found_at_its_ends_and_nowhere_else(line: bytes, id: object) -> None:
    line = line.replace(b"%s", b"x" * 5000)
    assert id_at_ends(line[:END_BYTES], line[-END_BYTES:]) == id


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":NaN}}', [7]),
        (b'{"params":{"id":1,"x":-Infinity},"id":"a","method":"m"}', ["a"]),
        (b'{"params":{"x":"\xff"},"id":7.0,"method":"m"}', [7]),
        (b'{"id":1,"method":"m","x":NaN,"id":2}', [2]),  # as a parser reads it
        (b'[{"id":1,"method":"m"},{"id":2,"method":"m","params":NaN},{"id":3,"result":1},{"method":"m"},5]', [1, 2]),
        (b"[%s]" % b",".join([b'{"id":1,"method":"m"}'] * 2000), []),  # too many
        (b'{"id":7,"result":NaN}', []),  # an answer
        (b'{"method":"m","params":NaN}', []),
        (b'{"id":7,"method":"m","params":{"x":%s}}' % (b"9" * 5000), [7]),
        (b'{"id":%s,"method":"m"}' % (b"9" * 5000), []),
        (b'{"id":NaN,"method":"m"}', []),
        (b'{"id":1e999,"method":"m"}', []),
        (b'{"id":"\xff","method":"m"}', []),
        (b'{"id":"\\ud800","method":"m","x":NaN}', []),
        (b'{"id":7,"method":"m"', []),
        (b'{"id":7,"method":"m"}{}', []),
        (b'{"id":7,"method":["m"],"x":NaN}', []),
        (b"[" * 60_000, []),
        (b'{"a":' * 10_000 + b"NaN" + b"}" * 10_000, []),
        (b'{"id":7,"method":"m","params":{"x":"%s","y":NaN}}' % (b"x" * 70_000), [7]),
        (b'{"method":"m","params":{"x":"%s","y":NaN},"id":7}' % (b"x" * 70_000), [7]),
        (b'{"method":"m","params":{"x":"%s","y":NaN,"id":7}}' % (b"x" * 70_000), []),
    ],
)
def test_the_ids_of_requests_in_a_line_that_is_almost_json(line: bytes, ids: list[object]) -> None:
    assert ids_in(line) == ids


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}', [7]),
        (b'{"result":{"id":1,"x":NaN},"id":"a"}', ["a"]),
        (b'{"id":7,"error":NaN}', [7]),
        (b'{"id":7,"result":{"x":}}', [7]),  # broken
        (b'{"id":7,"result":{"x":"%s","y":NaN}}' % (b"x" * 70_000), [7]),
        (b'{"result":{"x":"%s","y":NaN},"id":7}' % (b"x" * 70_000), [7]),
        (b'[{"id":1,"result":NaN},{"id":2,"method":"m"}]', [1]),
        (b'{"id":7,"method":"m","params":{"x":NaN}}', []),
        (b'{"id":7,"method":"m"', []),
        (b'{"id":7,"method":["m"],"result":NaN}', []),
        (b'{"id":7,"x":NaN}', []),
        (b'{"result":NaN}', []),
        (b"result", []),
    ],
)
def test_the_ids_of_answers_in_a_line_that_cannot_be_read(line: bytes, ids: list[object]) -> None:
    assert ids_in(line, ANSWER) == ids
