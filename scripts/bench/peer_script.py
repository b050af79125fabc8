"""What both peers need: the tools and resources of a project folder, and a coroutine that runs the script of a tool.

The script runs as an author would run it with asyncio: `create_subprocess_exec`, output read to the end, and the whole
group killed when the call is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any


def read_tools(project: str) -> dict[str, dict[str, Any]]:
    """Name to description and schema, for each script below `tools/`."""
    tools = {}
    for script in sorted(Path(project, "tools").glob("*.sh")):
        meta = script.with_suffix(".meta.json")
        if meta.exists():
            tools[script.stem] = json.loads(meta.read_text(encoding="utf-8"))
        else:
            tools[script.stem] = {"name": script.stem, "inputSchema": {"type": "object"}}
    return tools


def has_functions(project: str) -> bool:
    """Whether the tools of this project are functions in the server's own process."""
    return Path(project).name == "python"


def read_resources(project: str) -> dict[str, Path]:
    """Address to file, for each file below `resources/`."""
    return {path.as_uri(): path for path in sorted(Path(project, "resources").glob("*.txt"))}


async def run_script(project: str, name: str) -> str:
    child = await asyncio.create_subprocess_exec(
        f"{project}/tools/{name}.sh",
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
