"""The places in which scripts run: none is ever lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from mcpgreen.features.asking.asking import Asking
from mcpgreen.features.call import Run, Slot
from mcpgreen.protocol.input.state import KEY_BYTES, Seal
from mcpgreen.running.processes.pipes import PLACES, OutputPlace
from mcpgreen.running.shares import Places, Shares
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually


def test_a_place_that_is_given_after_the_call_is_over_is_given_back() -> None:
    """A helper waits to come back to the place of its call; the call ends in the very turn in which one is free."""
    slots = Places(1)
    own, others = Slot(slots), Slot(slots)
    with own:
        own.leave()
        others.take()
        helper = gevent.spawn(own.take)
        gevent.sleep(0)
        others.leave()
    helper.join()

    assert slots.free == 1


def test_a_place_is_given_back_once() -> None:
    slots = Places(2)
    slot = Slot(slots)
    with slot:
        assert slots.free == 1
        slot.leave()
        slot.leave()
        assert slots.free == 2
        slot.take()

    assert slots.free == 2


def test_a_script_runs_in_a_slot_also_after_an_unforeseen_error_while_it_asks() -> None:
    """The slot stayed with others, and the script went on beside whoever had it."""
    slots = Places(1)
    asking = Asking(seal=Seal(bytes(KEY_BYTES)))
    call: Any = SimpleNamespace(run=Run(Slot(slots), None), is_stateless=False)
    with call.run.slot:
        with pytest.raises(RuntimeError), asking.slot_released(call):
            assert slots.free == 1
            raise RuntimeError("unforeseen")
        assert slots.free == 0


def test_a_script_that_is_stopped_while_it_asks_does_not_wait_for_a_slot() -> None:
    slots = Places(1)
    asking = Asking(seal=Seal(bytes(KEY_BYTES)))
    call: Any = SimpleNamespace(run=Run(Slot(slots), None), is_stateless=False)
    with gevent.Timeout(60), pytest.raises(gevent.GreenletExit), call.run.slot, asking.slot_released(call):
        slots.acquire()
        raise gevent.GreenletExit

    assert slots.free == 0


def test_a_call_that_is_ended_gives_back_the_place_of_its_output_at_once() -> None:
    """Whoever still refers to the call, as a parked one is referred to, would keep others from printing a lot."""
    places = Shares(PLACES)
    run = Run(Slot(Places(1)), None)
    run.output_place = OutputPlace(places)
    assert run.output_place.take()
    run.end()

    assert not places.held


def free_places(places: Places, at_most: int) -> int:
    slots = [Slot(places) for _ in range(at_most)]
    takers = [gevent.spawn(slot.take) for slot in slots]
    gevent.sleep(0)
    taken = sum(taker.dead for taker in takers)
    gevent.killall(takers)
    for slot in slots:
        slot.leave()
    return taken


@pytest.mark.parametrize("limits", [(3, 1), (1, 3), (2, 4, 1), (4, 1, 2), (1, 10**30, 2), (2, 1, 10**30)], ids=str)
def test_the_number_of_places_may_change_while_all_are_taken(limits: tuple[int, ...]) -> None:
    places = Places(limits[0])
    held = [Slot(places) for _ in range(limits[0])]
    for slot in held:
        slot.take()
    for limit in limits[1:]:
        places.resize(limit)

    assert free_places(places, 9) == min(9, max(0, limits[-1] - len(held)))
    for left, slot in enumerate(held, 1):
        slot.leave()
        assert free_places(places, 9) == min(9, max(0, limits[-1] - len(held) + left))


def test_a_new_limit_of_a_tool_counts_the_calls_that_run_already(project: ProjectBuilder, speak: Speak) -> None:
    """Calls under the old and the new limit ran side by side, more than either of them allows."""
    script = "name=${MCP_TOOL_ARGS_JSON:9:1}; touch began-$name; until [[ -e end-$name ]]; do sleep 0.01; done"
    project.tool("other", "sleep 0.1")
    project.tool("busy", script, maxConcurrent=2)
    client = speak(QUIET_SECS=0.01)
    ids = {name: client.start_tool("busy", {"name": name}) for name in "ab"}
    eventually(lambda: all((project.root / f"began-{name}").exists() for name in ids))
    project.tool("busy", script, maxConcurrent=1, description="newer")
    eventually(lambda: client.tools()["busy"].get("description") == "newer")
    ids["c"] = client.start_tool("busy", {"name": "c"})
    for name in "ab":
        client.call_tool("other")
        assert not (project.root / "began-c").exists()
        project.write(f"end-{name}", "")
        assert "result" in client.wire.response(ids[name])

    eventually(lambda: (project.root / "began-c").exists())
    project.write("end-c", "")
    assert "result" in client.wire.response(ids["c"])
