"""The trace of a request reaches its script, if it is well-formed."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.running.scripts.environment import trace_variables as variables
from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SHOW = 'printf "%s|%s|%s" "$TRACEPARENT" "$TRACESTATE" "$BAGGAGE"\n'


@pytest.mark.requirement("P-151")
@pytest.mark.parametrize(
    "meta",
    [
        {"traceparent": PARENT},
        {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE"},
        {"traceparent": PARENT, "tracestate": "tenant@vendor=a value"},
        {"baggage": "user=ada,plan = full;secret; ttl=5"},
        {"baggage": "name=%C3%A9, empty="},
    ],
)
def test_what_is_well_formed_is_passed_on_as_it_is(meta: dict[str, str]) -> None:
    assert variables(meta) == {key.upper(): value for key, value in meta.items()}


@pytest.mark.requirement("P-151")
@pytest.mark.parametrize(
    "parent",
    [
        "",
        5,
        None,
        PARENT + "\n",
        PARENT + "-x",
        PARENT.upper(),
        PARENT.replace("00-", "ff-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        "$(rm -rf /)",
    ],
    ids=ascii,
)
def test_a_malformed_parent_is_not_and_neither_is_what_belongs_to_it(parent: Any) -> None:
    assert variables({"traceparent": parent, "tracestate": "a=b"}) == {}


@pytest.mark.requirement("P-151")
@pytest.mark.parametrize(
    "state",
    ["", "a", "=b", "a=", "A=b", "a=b,", "a=b\n", "a=é", "a=b=c", ["a=b"], "a=" + "x" * 600, "a=b," * 33 + "a=b"],
    ids=range(12),
)
def test_a_malformed_state_is_left_out_alone(state: Any) -> None:
    assert variables({"traceparent": PARENT, "tracestate": state}) == {"TRACEPARENT": PARENT}


@pytest.mark.requirement("P-151")
@pytest.mark.parametrize(
    "baggage", ["", "a", "a=b,", "a=b c", "a=\x00", "a=b;", 'a="b"', "a=b\nX=y", 5, "a=" + "x" * 9000], ids=range(10)
)
def test_malformed_baggage_is_left_out(baggage: Any) -> None:
    assert variables({"baggage": baggage}) == {}


@pytest.mark.requirement("P-151")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_scripts_of_tools_prompts_and_completions_see_the_trace(
    project: ProjectBuilder, speak: Speak, revision: str
) -> None:
    project.tool("show", SHOW)
    project.prompt("show.sh", "#!/bin/sh\n" + SHOW)
    project.program("prompts/show.completion", f'printf \'["%s"]\' "$({SHOW})"\n')
    client = speak(revision)
    meta = {"traceparent": PARENT, "tracestate": "a=b", "baggage": "user=ada"}
    expected = f"{PARENT}|a=b|user=ada"

    assert text_of(client.call_tool("show", meta=meta)) == expected
    (message,) = client.get_prompt("show", meta=meta)["messages"]
    assert message["content"]["text"] == expected
    question = {"ref": {"type": "ref/prompt", "name": "show"}, "argument": {"name": "x", "value": ""}}
    assert client.result("completion/complete", question, meta=meta)["completion"]["values"] == [expected]
