"""Which variables `validate` and `run-tool` say a script reads and will not get."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpgreen.catalog.tools import discover_tools
from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.checking.inputs import unseen_inputs
from mcpgreen.project.project import Project
from mcpgreen.settings.settings import load

SHELL, PYTHON, NODE = "#!/bin/bash\n", "#!/usr/bin/env python3\nimport os\n", "#!/usr/bin/env node\n"
KEY = PYTHON + "os.environ['A_KEY']\n"
HERE = {"CITY": "Bonn", "USER": "ada"}


def unseen(directory: Path, script: str, pattern: str = r"it reads (\w+)", **settings: str) -> list[str]:
    (directory / "tools").mkdir()
    (directory / "tools/tool").write_text(script)
    (directory / "tools/tool").chmod(0o755)
    project = Project(str(directory), {})
    tool = discover_tools(project, survey(project, [project.tools_dir])).items[0]
    given = load(settings, {}, {})
    return re.findall(pattern, str([*unseen_inputs(tool, "tool", given, HERE)]))


@pytest.mark.parametrize(
    ("script", "names"),
    [
        (SHELL + 'curl -H "Key: $WEATHER_API_KEY"', ["WEATHER_API_KEY"]),
        (SHELL + 'echo "${SERVICE_URL:?}" ${ACCESS_TOKEN:-none} $CITY', ["SERVICE_URL", "ACCESS_TOKEN", "CITY"]),
        (SHELL + "# $API_KEY\nawk '{print $API_KEY}'; echo \\$API_KEY $NF $UNSET $USER $HOME $MCP_TOKEN $arg_key", []),
        (SHELL + "API_KEY=x; read -r A_TOKEN; for B_TOKEN in 1; do echo $API_KEY $A_TOKEN $B_TOKEN; done", []),
        (SHELL + ": ${API_KEY:=none}\necho $API_KEY", []),
        (SHELL + ". ./.env\necho $API_KEY", []),
        (SHELL + "cat <<'END'\nSet $A_TOKEN.\nEND\necho $API_KEY", ["API_KEY"]),
        (SHELL + '. "$MCP_SDK/tool-sdk.sh"\necho $API_KEY', ["API_KEY"]),
        (SHELL + "# Look it up.\n# @env API_KEY!\necho $API_KEY", []),
        (PYTHON + "os.environ['SERVICE_URL']; os.getenv('API_KEY'); os.environ.get(\"CITY\")", None),
        (PYTHON + "os.environ['API_KEY'] = 'x'\nos.environ['API_KEY']; os.getenv('UNSET'); 'A_KEY' in os.environ", []),
        (PYTHON + "from dotenv import load_dotenv\nos.environ['API_KEY']", []),
        (PYTHON + "import mcp_tool\n@mcp_tool.tool(env=['A_KEY'])\ndef f() -> str:\n  return os.environ['A_KEY']", []),
        (
            PYTHON
            + "from mcp_tool import tool\n@tool\ndef f(): 0\n@tool(env=['A_KEY!'])\ndef g():\n  os.environ['A_KEY']",
            [],
        ),
        (NODE + "fetch(process.env.API_KEY + process.env['CITY'] + process.env.UNSET)", ["API_KEY", "CITY"]),
        (NODE + "process.env.API_KEY ||= 'x'; fetch(process.env.API_KEY)", []),
        ("#!/usr/bin/perl\nprint $API_KEY", []),
    ],
)
def test_only_variables_that_the_script_needs_and_does_not_get_are_reported(
    tmp_path: Path, script: str, names: list[str] | None
) -> None:
    assert unseen(tmp_path, script) == (["SERVICE_URL", "API_KEY", "CITY"] if names is None else names)


@pytest.mark.parametrize(
    ("script", "places"),
    [
        ("\n\n# About it.\necho $1", ["line 7"]),  # blank lines before a comment count
        ("while getopts a: o; do :; done", ["line 4"]),
        ("awk '{print $1}' table.txt", []),
        ("show() { echo $1; }\nshow x", []),
        ("show() {\n  echo $1\n}\nfunction f\n{\n  show $2\n}\nf", []),
        ("usage() {\n  echo $1\n}\nwhile getopts a: o; do :; done", ["line 7"]),
        ("main() { echo $1; }\nmain $@\nset -- x", ["line 5"]),
        ('echo "don\'t ${#a[@]}"; awk \'{print $1}\' table.txt; awk "{print \\$2}" x', []),
        ('set -- "$a"\necho $1', []),
        ("main() {\n  mcp_args_parse\n  echo $a\n}\nmain $@", []),
    ],
)
def test_arguments_of_a_command_line_are_reported(tmp_path: Path, script: str, places: list[str]) -> None:
    assert unseen(tmp_path, f"{SHELL}# Do it.\n# @arg a  A\n{script}\n", r"line \d+") == places


@pytest.mark.parametrize(("script", "names"), [("ls $1", ["@arg name!"]), ("exec ls $@", [])])
def test_a_tool_without_a_description_is_told_to_have_one(tmp_path: Path, script: str, names: list[str]) -> None:
    assert unseen(tmp_path, SHELL + script, r"describe each argument \(# (@arg \w+!)") == names


OPTIONS = 'OPTIONS "$folder" "$count", where OPTIONS are the options that it accepts, such as -n "$count"'


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("ls $1 $2", '"$folder" "$count"'),
        ("while getopts n: o; do case $o in n) count=$OPTARG ;; esac; done", OPTIONS),
        ("while [ $# -gt 0 ]; do case $1 in -n|--count) n=$2; shift ;; esac; shift; done", OPTIONS),
        ("case $1 in start) ls $2 ;; esac", '"$folder" "$count"'),
    ],
)
def test_the_advice_leaves_room_for_options(tmp_path: Path, script: str, words: str) -> None:
    lines = "# @arg folder!  Text\n# @arg count=1  Text\n"
    assert unseen(tmp_path, f"{SHELL}# Do it.\n{lines}{script}\n", r"set -- (.*?) \(and set") == [words]


@pytest.mark.parametrize(
    ("mode", "names"), [("minimal", ["A_KEY", "B_KEY"]), ("allowlist", ["B_KEY"]), ("inherit", [])]
)
def test_the_mode_of_the_environment_counts(tmp_path: Path, mode: str, names: list[str]) -> None:
    assert unseen(tmp_path, SHELL + "echo $A_KEY $B_KEY", tool_env_mode=mode, tool_env_allowlist="A_KEY") == names


@pytest.mark.parametrize(
    ("script", "way"),
    [
        (SHELL + "echo $A_KEY", "# @env A_KEY!"),
        (SHELL + "# mcp: {}\necho $A_KEY", '"env": ["A_KEY!"] in its description'),
        (SHELL + "# Say it.\n# @arg a  A\necho $A_KEY", "# @env A_KEY!"),
        (KEY + "import mcp_tool\n@mcp_tool.tool\ndef f(): 0", '@mcp_tool.tool(env=["A_KEY!"])'),
        (KEY + "from mcp_tool import tool\n@tool\ndef f(): 0", '@tool(env=["A_KEY!"])'),
        (KEY + "from mcp_tool import tool\n@tool\ndef f(): 0\n@tool(read_only=True)\ndef g(): 0",
         '@tool(env=["A_KEY!"]), or # mcp: {"env": ["A_KEY!"]} for all functions in the file'),
    ],
)  # fmt: skip
def test_the_advice_is_how_the_script_describes_itself(tmp_path: Path, script: str, way: str) -> None:
    assert unseen(tmp_path, script, "declare it: (.*?); without") == [way]
