"""Scripts that print a lot, many at a time: all is delivered, in bounded memory."""

from __future__ import annotations

import pytest

from tests.support import ways
from tests.support.processes import MIB, peak_bytes
from tests.support.project import ProjectBuilder
from tests.support.wire import Start, Wire, text_of

way, project = ways.way, ways.project

OUTPUTS = {
    "text": ("head -c 5000000 /dev/zero | tr '\\0' x", lambda text: text == "x" * 5_000_000),
    "json": (
        """printf '{"a":"'; head -c 4000000 /dev/zero | tr '\\0' x; printf '"}'""",
        lambda text: len(text) == 4_000_008,
    ),
    "small parts": (
        """printf '{"a":['; yes '[],' | head -n 100000 | tr -d '\\n'; printf '1]}'""",
        lambda text: len(text) == 300_009,
    ),
}


@ways.cheapest(case=["json"])
@pytest.mark.parametrize("case", OUTPUTS)
def test_many_large_outputs_at_a_time_take_no_more_memory_than_a_few(
    project: ProjectBuilder, client: Wire, case: str
) -> None:
    """Sixteen of ten megabytes took 544 MB, and held everything else for seconds."""
    script, is_right = OUTPUTS[case]
    project.tool("prints", script)
    calls = [client.start_request("tools/call", {"name": "prints"}) for _ in range(12)]
    assert client.request("ping")["result"] == {}

    assert all(is_right(text_of(client.response(call, within_secs=60)["result"])) for call in calls)
    assert peak_bytes(client.process.pid) < 160 * MIB


@ways.per_call("output")
@ways.cheapest(way=["resident"])
def test_a_place_for_large_output_is_given_back_however_a_call_ends(project: ProjectBuilder, start: Start) -> None:
    project.tool("endless", "tr '\\0' x < /dev/zero")
    project.tool("stuck", "head -c 3000000 /dev/zero; sleep 60", timeoutSecs=0.5)
    project.tool("fails", "head -c 3000000 /dev/zero | tr '\\0' x; exit 1")
    project.tool("prints", "head -c 3000000 /dev/zero | tr '\\0' x")
    wire = start(max_tool_output_size=4 * MIB).greeted()
    for name in ("endless", "stuck", "fails") * 2:
        wire.request("tools/call", {"name": name})
    cancelled = [wire.start_request("tools/call", {"name": "stuck"}) for _ in range(4)]
    for call in cancelled:
        wire.notify("notifications/cancelled", {"requestId": call})

    assert len(text_of(wire.call_tool("prints"))) == 3_000_000
