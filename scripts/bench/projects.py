"""The project folders that every subject serves: the same scripts, names and descriptions for all.

The Python tools are functions here, for the SDK servers, which call them in their own process as their users would
write it; for servers that run scripts, each becomes a script.

A shell tool has a floor: the same script without our SDK, with as many subshells and the same output, so that what it
takes is bash alone. The ratio of the two is the price of the SDK, on any machine and with any load.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import csv
import datetime
import hashlib
import inspect
import io
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

LINE = b"x" * 99 + b"\n"
MB = 1_000_000
RESOURCE_BYTES = {"1kb": 1000, "1mb": MB}
MANY = 1000
BASH = "#!/usr/bin/env bash\n"
PYTHON = f"#!{sys.executable}\n"
SOURCE = 'source "${MCP_SDK:?}/tool-sdk.sh"\n'
IMPORTS = "import base64, collections, csv, datetime, hashlib, io, json, math, re, textwrap\n"


def hello(name: str) -> str:
    return f"Hello, {name}!"


def marked(name: str) -> str:
    """As a script it is a function with a mark, and calls nothing of the SDK itself."""
    return f"Hello, {name}!"


def ten(name: str) -> str:
    """As a script it imports ten modules of the standard library; this call needs three of them."""
    return f"{datetime.date(2026, 7, 28).isoformat()} {json.dumps([name])} {math.floor(2.5)}"


def work(name: str) -> str:
    """With something of all ten."""
    digest = hashlib.sha256(base64.b64encode(name.encode())).hexdigest()
    row = io.StringIO()
    csv.writer(row).writerow([name, digest[:8], math.floor(2.5)])
    letters = collections.Counter(re.findall(r"\w", name))
    day = datetime.date(2026, 7, 28).isoformat()
    return textwrap.shorten(f"{day} {row.getvalue().strip()} {json.dumps(letters)}", 200)


async def hello_soon(name: str) -> str:
    return f"Hello, {name}!"


async def sleep_long(name: str) -> str:
    await asyncio.sleep(3600)
    return name


FUNCTIONS: dict[str, Callable[[str], Any]] = {"hello": hello, "marked": marked, "ten": ten, "work": work}
# Resident functions, with what their scripts say about it.
STAYING: dict[str, tuple[Callable[[str], Any], Any]] = {
    "alone": (hello, "server"),
    "side_by_side": (hello_soon, {"for": "server", "concurrency": 16}),
    "two_workers": (hello, {"for": "server", "workers": 2}),
}
# The same for tools whose calls are tasks. FastMCP has tasks for `async` functions only.
TASKS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "forked": (hello, None),
    "resident": (hello_soon, {"for": "server", "concurrency": 16}),
    "asleep": (sleep_long, {"for": "server", "concurrency": 64}),
}
FUNCTIONS_OF = {
    "python": FUNCTIONS,
    "resident": {name: function for name, (function, _) in STAYING.items()},
    "tasks": {**{name: function for name, (function, _) in TASKS.items()}, "forked": hello_soon},
}


class ShellTool(NamedTuple):
    """A tool, the arguments of each call, what it does, how many subshells that takes, and what it says."""

    name: str
    metric: str
    arguments: dict[str, Any]
    comments: str
    body: str
    subshells: int
    text: str

    @property
    def floor_name(self) -> str:
        return f"{self.name}-floor"


SHELL_TOOLS = (
    ShellTool(
        name="one-argument",
        metric="shell_one",
        arguments={"name": "Ada"},
        comments="# Greet somebody\n# @arg name!  Who is greeted\n",
        body='name=$(mcp_args_require .name)\nmcp_emit_text "Hello $name"\n',
        subshells=1,
        text="Hello Ada",
    ),
    ShellTool(
        name="parsed-arguments",
        metric="shell_parsed",
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
        text='{"success":true,"result":{"greeting":"Hello Ada!","times":"3","tone":"warm","note":""}}',
    ),
    ShellTool(
        name="several-arguments",
        metric="shell_several",
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
        text='{"success":true,"result":{"name":"Ada","excited":"true","times":"3","tone":"warm","width":"40"}}',
    ),
)


def write_projects(folder: Path, names: Collection[str]) -> None:
    for name in names:
        (folder / name / "tools").mkdir(parents=True)
        _WRITERS[name](folder / name)


def write_script(path: Path, text: str, meta: dict[str, Any] | None = None) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    if meta is not None:
        write_meta(path, meta)


def write_meta(script: Path, meta: dict[str, Any]) -> None:
    script.with_suffix(".meta.json").write_text(json.dumps(meta, separators=(",", ":")), encoding="utf-8")


def meta_of(name: str, argument: str, description: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {argument: {"type": "string", "default": ""}}}
    return {"name": name, "description": description, "inputSchema": schema}


def describe_tool(number: int) -> str:
    return f"Tool number {number} of the benchmark, described in a sentence of ordinary length."


def function_script(name: str, description: str) -> str:
    return f'''{PYTHON}
from typing import Literal

import mcp_tool


@mcp_tool.tool
def {name}(text: str, times: int = 1, tone: Literal["warm", "cool"] = "warm") -> str:
    """{description}"""
    if tone == "cool":
        text = text.lower()
    return text * times
'''


def function_meta(name: str, description: str) -> dict[str, Any]:
    """What the server reads from that script."""
    properties = {
        "text": {"type": "string"},
        "times": {"type": "integer", "default": 1},
        "tone": {"type": "string", "enum": ["warm", "cool"], "default": "warm"},
    }
    schema = {"type": "object", "properties": properties, "required": ["text"], "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema}


def write_shell_tools(tools: Path) -> None:
    for tool in SHELL_TOOLS:
        floor = "x=$(:)\n" * tool.subshells + f"printf %s '{tool.text}'\n"
        write_script(tools / f"{tool.name}.sh", BASH + tool.comments + SOURCE + tool.body)
        write_script(tools / f"{tool.floor_name}.sh", BASH + tool.comments + floor)


def _write_calls(root: Path) -> None:
    """Scripts to call: a trivial one, two that print much, one that has to be cancelled."""
    write_script(root / "tools" / "ok.sh", "#!/bin/sh\necho ok\n")
    write_script(root / "tools" / "stuck.sh", "#!/bin/sh\nsleep 60 &\nsleep 60\n")
    for size_mb in (1, 10):
        data = root / f"{size_mb}mb.txt"
        data.write_bytes(LINE * (size_mb * MB // len(LINE)))
        write_script(root / "tools" / f"print{size_mb}mb.sh", f"#!/bin/sh\ncat '{data}'\n")


def _write_tools(root: Path, count: int) -> None:
    """Many described tools to list. The trivial script serves as each of them."""
    for number in range(count):
        name = f"tool{number:04}"
        write_script(
            root / "tools" / f"{name}.sh", "#!/bin/sh\necho ok\n", meta_of(name, "text", describe_tool(number))
        )


def _write_resources(root: Path) -> None:
    _write_tools(root, 1)
    (root / "resources").mkdir()
    for name, size_bytes in RESOURCE_BYTES.items():
        (root / "resources" / f"{name}.txt").write_bytes(LINE * (size_bytes // len(LINE)))


def _write_watched(root: Path) -> None:
    (root / "resources").mkdir()
    for number in range(MANY):
        (root / "resources" / f"{number:04}.txt").write_bytes(LINE)


def _write_python(root: Path) -> None:
    for name, function in FUNCTIONS.items():
        source = inspect.getsource(function)
        script = f'{source}mcp_tool.emit_text({name}(mcp_tool.require("name")))\n'
        if name == "marked":
            script = f"@mcp_tool.tool\n{source}"
        imports = IMPORTS if name in ("ten", "work") else ""
        path = root / "tools" / f"{name}.py"
        write_script(path, f"{PYTHON}{imports}import mcp_tool\n{script}", meta_of(name, "name", "Greet somebody"))


def _write_resident(root: Path) -> None:
    """Resident functions; and a shell tool, once as a loop and once as a script for each call."""
    for name, (function, stays) in STAYING.items():
        script = f"import mcp_tool\n@mcp_tool.tool(name={name!r}, stays={stays!r})\n{inspect.getsource(function)}"
        write_script(root / "tools" / f"{name}.py", PYTHON + script)
    tool = SHELL_TOOLS[0]
    each = tool.body.replace("mcp_emit_text", "mcp_answer")
    loop = f'# mcp: {{"stays": "server"}}\n{SOURCE}while mcp_next_call; do\n{each}done\n'
    write_script(root / "tools" / "loop.sh", BASH + tool.comments + loop)
    write_script(root / "tools" / "each.sh", BASH + tool.comments + SOURCE + tool.body)


def _write_tasks(root: Path) -> None:
    """Functions and scripts whose calls are tasks at once."""
    for name, (function, stays) in TASKS.items():
        mark = f"@mcp_tool.tool(name={name!r}, stays={stays!r}, task='always')\n{inspect.getsource(function)}"
        imports = "import asyncio, mcp_tool\n" if function is sleep_long else "import mcp_tool\n"
        write_script(root / "tools" / f"{name}.py", PYTHON + imports + mark)
    for name, command in (("script", "echo ok"), ("asleep-script", "exec sleep 3600")):
        write_script(root / "tools" / f"{name}.sh", f'#!/bin/sh\n# mcp: {{"task": "always"}}\n{command}\n')


def _write_functions(root: Path) -> None:
    """Two projects with many functions as tools: in the second, each has a .meta.json beside it, too."""
    for project in ("plain", "described"):
        tools = root / project / "tools"
        tools.mkdir(parents=True)
        for number in range(MANY):
            name, description = f"tool{number:04}", describe_tool(number)
            meta = function_meta(name, description) if project == "described" else None
            write_script(tools / f"{name}.py", function_script(name, description), meta)


_WRITERS: dict[str, Callable[[Path], None]] = {
    "calls": _write_calls,
    "tools-100": partial(_write_tools, count=100),
    "tools-1000": partial(_write_tools, count=MANY),
    "changing": partial(_write_tools, count=100),
    "static": partial(_write_tools, count=100),
    "resources": _write_resources,
    "watched": _write_watched,
    "python": _write_python,
    "resident": _write_resident,
    "shell": lambda root: write_shell_tools(root / "tools"),
    "functions": _write_functions,
    "tasks": _write_tasks,
}
