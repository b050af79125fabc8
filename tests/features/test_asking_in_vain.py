"""Scripts that cannot ask a stateless client, and fail: because of the question, or for another reason."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import ways
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK, SAMPLING, Talk, form, said, sample
from tests.support.wire import MODERN, text_of

way, project = ways.way, ways.project

NAME = form("Who?", name={"type": "string"})
SHELL = f'source "$MCP_SDK/tool-sdk.sh"\nquestions={json.dumps(json.dumps({"who": NAME}))}\n'
PYTHON = f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, os.environ['MCP_SDK'])\nimport mcp_tool\n"
BARE = f"#!{sys.executable}\n{ASK}\nreply = ask({{'who': {NAME!r}}})['who']\n"


# In a resident process, an error of a function is an answer.
FUNCTIONS = [
    f"{PYTHON}print('begun')\nmcp_tool.confirm('Sure?')",
    f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.NotAnswered as e: sys.exit(f'Sorry: {{e}}')",
    f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.Unsupported: sys.exit(3)",
]


@ways.per_call("exit status", script=FUNCTIONS)
@ways.cheapest(revision=[MODERN])
@pytest.mark.requirement("P-017", "G-needs")
@pytest.mark.parametrize(
    "script",
    [
        f"{BARE}sys.exit(reply['message'])",
        f"{BARE}sys.exit(3)",
        *FUNCTIONS,
        f"{SHELL}echo careful >&2\nanswer=$(mcp_elicit_confirm 'Sure?')\necho went on",
        f"{SHELL}answer=$(mcp_elicit_confirm 'Sure?' 2>/dev/null) || exit 3",
        f'{SHELL}answers=$(mcp_ask "$questions")',
    ],
    ids=["bare", "bare, silent", "Python", "Python, told", "Python, silent", "shell", "shell, silent", "shell, ask"],
)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_script_that_falls_over_a_question_says_what_it_needs(
    project: ProjectBuilder, speak: Speak, script: str, revision: str
) -> None:
    """The shell SDK did not even ask, so its scripts failed as if for another reason. An error with the code -32021
    reached models as "an error occurred"."""
    project.tool("asker", script)
    result = speak(revision).call_tool("asker")

    assert result["isError"] is True and result["_meta"]["exitCode"] != 0
    assert text_of(result).startswith("Tool 'asker' failed, because the client does not support elicitation.form: ")


@pytest.mark.requirement("P-017", "G-needs")
def test_a_script_that_falls_over_a_question_to_the_model_says_what_it_needs(
    project: ProjectBuilder, speak: Speak
) -> None:
    project.tool("asker", f"{SHELL}answer=$(mcp_sample '\"Hello?\"' 10)")

    assert "because the client does not support sampling: mcp_sample: " in text_of(speak(MODERN).call_tool("asker"))


@pytest.mark.requirement("G-needs", "G-exit-status")
@pytest.mark.parametrize(
    "script",
    [
        f"{BARE}sys.exit('disk full')",
        f"{PYTHON}try: mcp_tool.confirm('Sure?')\nexcept mcp_tool.Unsupported: pass\nsys.exit('disk full')",
        f"{SHELL}if ! answer=$(mcp_elicit_confirm 'Sure?'); then answer=''; fi\necho 'disk full' >&2\nexit 1",
        f"{SHELL}mcp_ask \"$questions\" >/dev/null || :\necho 'disk full' >&2\nexit 1",
    ],
    ids=["bare", "Python", "shell", "shell, ask"],
)
def test_a_script_that_went_on_without_an_answer_fails_for_its_own_reason(
    project: ProjectBuilder, speak: Speak, way: str, script: str
) -> None:
    """It was told as if a client with forms had spared it the full disk."""
    project.tool("asker", script)
    result = speak(MODERN).call_tool("asker")

    # An error of a function is an answer of its process.
    is_answer = way == "resident" and script.startswith(PYTHON)
    assert text_of(result) == ("disk full" if is_answer else ways.failure(way, 1, "disk full"))
    assert result["isError"] is True


@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_is_killed_later_did_not_fall_over_the_question(
    project: ProjectBuilder, speak: Speak, way: str
) -> None:
    project.tool("asker", f"{BARE}os.kill(os.getpid(), 9)")

    assert text_of(speak(MODERN).call_tool("asker")) == ways.failure(way, 137)


@ways.per_call("exit status")
@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_prints_an_error_result_has_coped(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("asker", f"{SHELL}mcp_elicit_confirm '?' >/dev/null || {{ mcp_error no_answer 'Too bad'; exit 1; }}")
    result = speak(MODERN).call_tool("asker")

    assert (result["isError"], text_of(result)) == (True, "Too bad")


@pytest.mark.requirement("G-needs", "G-exit-status")
def test_a_script_that_asked_something_else_has_coped(project: ProjectBuilder, speak: Speak, way: str) -> None:
    project.tool("asker", f"{BARE}ask({{'text': {sample('?')!r}}})\nsys.exit(3)")
    talk = Talk(speak(MODERN, capabilities=SAMPLING), name="asker").begun()

    assert text_of(talk.answer(said("hi"))) == ways.failure(way, 3)
