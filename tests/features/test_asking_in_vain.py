"""Scripts that cannot ask a stateless client, and fail: because of the question, or for another reason."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import gevent
import pytest
from gevent.lock import Semaphore

from mcpgreen.features.asking.interaction import Interaction
from mcpgreen.features.asking.scripts import MAX_OPEN, AskingScript
from mcpgreen.features.run import Run, Slot
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.turns import TURN_SECS
from tests.support.client import Client
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, SAMPLING, Talk, form, said, sample
from tests.support.waiting import eventually
from tests.support.wire import MODERN, text_of

Json = dict[str, Any]
Speak = Callable[..., Client]

NAME = form("Who?", name={"type": "string"})
SHELL = f'source "$MCP_SDK/tool-sdk.sh"\nquestions={json.dumps(json.dumps({"who": NAME}))}\n'
PYTHON = f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, os.environ['MCP_SDK'])\nimport mcp_tool\n"
BARE = f"#!{sys.executable}\n{ASK}\nreply = ask({{'who': {NAME!r}}})['who']\n"


@pytest.mark.requirement("P-017", "G-needs")
@pytest.mark.parametrize(
    "script",
    [
        f"{BARE}sys.exit(reply['message'])",
        f"{BARE}sys.exit(3)",
        f"{PYTHON}print('begun')\nmcp_tool.confirm('Sure?')",
        f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.NotAnswered as e: sys.exit(f'Sorry: {{e}}')",
        f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.Unsupported: sys.exit(3)",
        f"{SHELL}echo careful >&2\nanswer=$(mcp_elicit_confirm 'Sure?')\necho went on",
        f"{SHELL}answer=$(mcp_elicit_confirm 'Sure?' 2>/dev/null) || exit 3",
        f'{SHELL}answers=$(mcp_ask "$questions")',
    ],
    ids=["bare", "bare, silent", "Python", "Python, told", "Python, silent", "shell", "shell, silent", "shell, ask"],
)
def test_a_script_that_falls_over_a_question_says_what_it_needs(
    project: ProjectBuilder, speak: Speak, script: str
) -> None:
    """The shell SDK did not even ask, so its scripts failed as if for another reason."""
    project.tool("asker", script)
    refusal = speak(MODERN).error("tools/call", {"name": "asker"})

    assert refusal["code"] == -32021
    assert refusal["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert speak("2025-11-25").call_tool("asker")["isError"]


@pytest.mark.requirement("P-017", "G-needs")
def test_a_script_that_falls_over_a_question_to_the_model_says_what_it_needs(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("asker", f"{SHELL}answer=$(mcp_sample '\"Hello?\"' 10)")

    assert speak(MODERN).error("tools/call", {"name": "asker"})["data"] == {"requiredCapabilities": {"sampling": {}}}


@pytest.mark.requirement("G-needs", "G-exit-status")
@pytest.mark.parametrize(
    "script",
    [
        f"{BARE}sys.exit('disk full')",
        f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.Unsupported: pass\nsys.exit('disk full')",
        f"{SHELL}if ! answer=$(mcp_elicit_confirm 'Sure?'); then answer=''; fi\necho 'disk full' >&2\nexit 3",
        f"{SHELL}mcp_ask \"$questions\" >/dev/null || :\necho 'disk full' >&2\nexit 1",
    ],
    ids=["bare", "Python", "shell", "shell, ask"],
)
def test_a_script_that_went_on_without_an_answer_fails_for_its_own_reason(
    project: ProjectBuilder, speak: Speak, script: str
) -> None:
    """It was answered with -32021, as if a client with forms had spared it the full disk."""
    project.tool("asker", script)
    result = speak(MODERN).call_tool("asker")

    assert (result["isError"], text_of(result)) == (True, "Tool failed: disk full")


@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_is_killed_later_did_not_fall_over_the_question(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("asker", f"{BARE}os.kill(os.getpid(), 9)")

    assert text_of(speak(MODERN).call_tool("asker")).startswith("Tool failed: killed by SIGKILL")


@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_prints_an_error_result_has_coped(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("asker", f"{SHELL}mcp_elicit_confirm '?' >/dev/null || {{ mcp_error no_answer 'Too bad'; exit 1; }}")
    result = speak(MODERN).call_tool("asker")

    assert (result["isError"], text_of(result)) == (True, "Too bad")


@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_asked_something_else_has_coped(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("asker", f"{BARE}ask({{'text': {sample('?')!r}}})\nexit(3)")
    talk = Talk(speak(MODERN, capabilities=SAMPLING), name="asker")
    talk.begin()

    assert text_of(talk.answer(said("hi"))) == "Tool failed: exit code 3"


def test_whoever_asks_in_vain_is_heard_again_only_after_a_turn_of_others() -> None:
    """Refused questions cost a file each, and a script can ask them without an end: nobody else was served."""
    run, call = Run(Slot(Semaphore(1)), None), SimpleNamespace(interaction=Interaction(), is_cancelled=False)
    script = AskingScript(cast(Any, None), cast(Any, call), run, Deadline(60))
    answers: list[Json] = []

    def answer(statuses: Json) -> None:
        answers.append(statuses)
        until = time.monotonic() + TURN_SECS
        while time.monotonic() <= until:
            pass

    for _ in range(MAX_OPEN):
        script.begin({}, None, answer, size_bytes=1)
    had_room = gevent.spawn(lambda: (len(answers), script.has_room))

    assert had_room.get() == (MAX_OPEN, False)
    eventually(lambda: (gevent.sleep(0.001), script.has_room)[1])
