"""What both peers need: the tools and resources of a project folder, and a coroutine that runs the script of a tool.

The script runs as an author would run it with asyncio: `create_subprocess_exec`, output read to the end, and the whole
group killed when the call is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from functions import FUNCTIONS
from mix import FUNCTIONS as MIXED
from mix import PROJECT as MIX
from real_tools import SCRIPT


def read_tools(project: str) -> dict[str, dict[str, Any]]:
    """Name to description and schema, for each script below `tools/`."""
    tools: dict[str, dict[str, Any]] = {}
    if functions_of(project):
        return tools
    for script in sorted(Path(project, "tools").glob("*.sh")):
        meta = script.with_suffix(".meta.json")
        if meta.exists():
            tools[script.stem] = json.loads(meta.read_text(encoding="utf-8"))
        else:
            tools[script.stem] = {"name": script.stem, "inputSchema": {"type": "object"}}
    return tools


def functions_of(project: str) -> dict[str, Callable[..., str]]:
    """The tools of this project that are functions in the server's own process."""
    name = Path(project).name
    return dict(FUNCTIONS if name == "python" else MIXED if name == MIX else {})


def is_script(project: str, name: str) -> bool:
    """Whether a tool with functions beside it runs a script all the same."""
    return Path(project).name == "python" and name == SCRIPT


def read_resources(project: str) -> dict[str, Path]:
    """Address to file, for each file below `resources/`."""
    return {path.as_uri(): path for path in sorted(Path(project, "resources").glob("*.txt"))}


async def run_python(project: str, name: str, arguments: dict[str, Any]) -> str:
    """A script of ours, with what it needs: its SDK, and its arguments where that looks for them."""
    sdk = str(Path(__file__).resolve().parents[2] / "mcpgreen" / "sdk" / "python")
    env = {**os.environ, "PYTHONPATH": sdk, "MCP_TOOL_ARGS_JSON": json.dumps(arguments)}
    return await run_script(project, name, suffix=".py", env=env)


async def run_script(project: str, name: str, *, suffix: str = ".sh", env: dict[str, str] | None = None) -> str:
    child = await asyncio.create_subprocess_exec(
        f"{project}/tools/{name}{suffix}",
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, _ = await child.communicate()
    except asyncio.CancelledError:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    return output.decode("utf-8", "replace")
