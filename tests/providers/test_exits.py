"""What a client hears of a provider that gave up."""

from __future__ import annotations

import pytest

from mcpgreen.errors import ResourceNotFound
from mcpgreen.providers.exits import rpc_error

URI = "file:///x"


@pytest.mark.parametrize(
    ("status", "code", "without_text", "takes_text"),
    [
        (1, -32603, "Resource provider failed", True),
        (2, -32603, "Resource outside allowed roots", False),
        (3, -32002, "Resource not found", False),
        (4, -32602, "Invalid resource specification", True),
        (5, -32603, "Resource fetch failed", True),
        (6, -32603, "Resource exceeded size limit", True),
        (7, -32603, "Resource provider failed", True),
        (143, -32603, "Resource provider failed", True),
        (-9, -32603, "Resource provider failed", True),
    ],
)
def test_each_status_has_its_error(status: int, code: int, without_text: str, takes_text: bool) -> None:
    silent, talking = rpc_error(status, " \n", URI), rpc_error(status, "Because.\n", URI)

    assert (silent.code, silent.message) == (code, without_text)
    assert (talking.code, talking.message) == (code, "Because." if takes_text else without_text)


def test_a_resource_that_is_not_there_is_named() -> None:
    error = rpc_error(3, "", URI)

    assert isinstance(error, ResourceNotFound)
    assert error.data == {"uri": URI}
