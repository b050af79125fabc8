"""Variables of the server that a tool gets because its description names them (`env`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpgreen.catalog.tools import MAX_VARIABLES, discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.project.project import Project
from tests.support import ways
from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import text_of

way, project = ways.way, ways.project

KEY = "hunter2-weather"
SHOW = 'echo "key=${WEATHER_API_KEY-none} other=${OTHER_KEY-none}"'
GIVEN = {"WEATHER_API_KEY": KEY, "OTHER_KEY": "another"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tool_env_mode": "allowlist", "tool_env_allowlist": "PAGER"},
        {"tool_env_mode": "inherit", "tool_env_inherit_allow": "true"},
    ],
    ids=["minimal", "allowlist", "inherit"],
)
def test_a_tool_gets_the_variables_that_it_names_whatever_the_mode(
    project: ProjectBuilder, speak: Speak, settings: dict[str, str]
) -> None:
    project.tool("described", SHOW, env=["WEATHER_API_KEY!", "ABSENT"])
    project.tool("commented", f"# Tell the weather.\n# @env WEATHER_API_KEY!  Of the service\n{SHOW}")
    project.tool("other", SHOW)
    client = speak(env=GIVEN, **settings)
    others = "another" if settings.get("tool_env_mode") == "inherit" else "none"

    for name in ("described", "commented"):
        assert text_of(client.call_tool(name)) == f"key={KEY} other={others}\n"
    if others == "none":
        assert text_of(client.call_tool("other")) == "key=none other=none\n"


def test_a_call_without_a_required_variable_says_which_and_how_to_set_it(project: ProjectBuilder, speak: Speak) -> None:
    project.tool("weather", "touch was-run", env=["WEATHER_API_KEY!", "OTHER_KEY"])
    result = speak(env={"WEATHER_API_KEY": ""}).call_tool("weather")

    assert result["isError"]
    assert "needs WEATHER_API_KEY in the server's environment" in text_of(result)
    assert "to set it, for example with the --env option of mcpgreen config," in text_of(result)
    assert not (project.root / "was-run").exists()


def test_values_reach_neither_the_client_nor_the_log_when_the_tool_fails(
    project: ProjectBuilder, speak: Speak, way: str
) -> None:
    """Their names say nothing: they are secret because a description names them."""
    given = {"CITY": "Springfield", "LINES_OF": "first part\nsecond part"}
    project.tool("weather", 'echo "$CITY" >&2; echo "no $CITY: $LINES_OF" >&2; exit 1', env=["CITY", "LINES_OF"])
    client = speak(env=given, log_level="debug")
    result = client.call_tool("weather", {"note": "in Springfield"})

    assert text_of(result) == ways.failure(way, 1, "[redacted]\nno [redacted]: [redacted]")
    client.wire.close_stdin()
    client.wire.wait()
    for secret in ("Springfield", "second part"):
        assert secret not in json.dumps(result) + client.wire.stderr


@pytest.mark.parametrize(
    ("names", "kept", "complaint"),
    [
        (["A_KEY", "b!"], ["A_KEY", "b!"], ""),
        (["LD_PRELOAD!", "A_KEY"], ["A_KEY"], "env: LD_PRELOAD is left out: it loads other code into programs"),
        (["PYTHONPATH"], [], "it changes how scripts are run"),
        (["BASH_ENV"], [], "it changes how scripts are run"),
        (["PATH"], [], "every tool gets it anyway"),
        (["MCPGREEN_STATE_KEY"], [], "the server decides which of its own variables tools get"),
        (["A-KEY"], None, "env must be an array of at most 50 variable names"),
        (
            [f"K{number}" for number in range(MAX_VARIABLES + 1)],
            None,
            "env must be an array of at most 50 variable names",
        ),
        ("A_KEY", None, "env must be an array"),
    ],
)
def test_names_that_cannot_be_passed_on_are_told_with_the_reason(
    tmp_path: Path, names: object, kept: list[str] | None, complaint: str
) -> None:
    ProjectBuilder(tmp_path).tool("weather", "true", description="Weather", env=names)
    project = Project(str(tmp_path), {})
    found = discover_tools(project, survey(project, [project.tools_dir]))

    assert [list(tool.description.env) for tool in found.items] == ([] if kept is None else [kept])
    assert complaint in "\n".join(found.warnings)
