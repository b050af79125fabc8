from __future__ import annotations

import pytest

from mcpgreen.protocol.refused_lines import request_id_in
from mcpgreen.transports.lines import END_BYTES


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
    assert request_id_in(line[:END_BYTES], line[-END_BYTES:]) == id
