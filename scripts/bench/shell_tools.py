"""Tools in shell as people write them with the SDK, each with its floor: the same script without the SDK.

A floor starts as many subshells as its tool and prints what the tool prints, so that what it takes is bash alone. The
ratio of the two is the price of the SDK, on any machine and with any load.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

HEAD = "#!/usr/bin/env bash\n"
SOURCE = 'source "${MCP_SDK:?}/tool-sdk.sh"\n'


class ShellTool(NamedTuple):
    """A tool, the arguments of each call, what it does, how many subshells that takes, and what it may cost: the bar is
    a multiple of its floor."""

    name: str
    arguments: dict[str, Any]
    comments: str
    body: str
    subshells: int
    text: str
    bar: float

    @property
    def floor_name(self) -> str:
        return f"{self.name}-floor"


def _envelope(result: dict[str, Any]) -> str:
    return json.dumps({"success": True, "result": result}, separators=(",", ":"))


ONE = ShellTool(
    name="one-argument",
    arguments={"name": "Ada"},
    comments="# Greet somebody\n# @arg name!  Who is greeted\n",
    body='name=$(mcp_args_require .name)\nmcp_emit_text "Hello $name"\n',
    subshells=1,
    text="Hello Ada",
    bar=2.0,
)
PARSED = ShellTool(
    name="parsed-arguments",
    arguments={"name": "Ada", "excited": True, "times": 3, "tone": "warm"},
    comments="""\
# Greet somebody
# @arg name!                 Who is greeted
# @arg excited=false bool    Whether the greeting ends with an exclamation mark
# @arg times=1 int           How often
# @arg tone[warm|cool]=warm  In which tone
# @arg note=""               What else is to be said
""",
    body="""\
mcp_args_parse
greeting="Hello $name"
[[ $excited == false ]] || greeting+="!"
mcp_result_success "$(mcp_json_obj greeting "$greeting" times "$times" tone "$tone" note "$note")"
""",
    subshells=1,
    text=_envelope({"greeting": "Hello Ada!", "times": "3", "tone": "warm", "note": ""}),
    bar=2.3,
)
SEVERAL = ShellTool(
    name="several-arguments",
    arguments={"name": "Ada", "excited": True, "times": 3, "size": {"width": 40}},
    comments="",
    body="""\
name=$(mcp_args_require .name)
excited=$(mcp_args_bool .excited --default false)
times=$(mcp_args_int .times --default 1 --min 1 --max 9)
tone=$(mcp_args_get '.tone // "warm"')
width=$(mcp_args_get .size.width --default 80)
mcp_result_success "$(mcp_json_obj name "$name" excited "$excited" times "$times" tone "$tone" width "$width")"
""",
    subshells=6,
    text=_envelope({"name": "Ada", "excited": "true", "times": "3", "tone": "warm", "width": "40"}),
    bar=2.3,
)
SHELL_TOOLS = (ONE, PARSED, SEVERAL)


def write_shell_tools(tools: Path) -> None:
    """Each of them, and its floor, as files of a project's tools/."""
    for tool in SHELL_TOOLS:
        _write(tools / f"{tool.name}.sh", HEAD + tool.comments + SOURCE + tool.body)
        floor = "x=$(:)\n" * tool.subshells + f"printf %s '{tool.text}'\n"
        _write(tools / f"{tool.floor_name}.sh", HEAD + tool.comments + floor)


def _write(path: Path, script: str) -> None:
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
