"""The project that every client meets, and a look at the processes it leaves behind.

Tools that report while they run wait for the file `seen` afterwards: a client writes it when the reports have reached
it. So a report that came only with the result would be noticed, and none can race with the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from tests.support.prerequisites import require_program
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.wire import clean_environment, command_of_tests

SERVER = [sys.executable, "-m", "mcpgreen", "serve", "--project-root"]
TOOL_DEADLINE_SECS = 20
VISIT_SECS = 120.0  # for all of it; each of its steps has its own, much shorter bound
CLIENT_GRACE_SECS = 2.0  # after closing the pipe, Python and TypeScript clients alike; then they send signals

TOOLS = ["broken", "endless", "greet", "narrate", "walk", "weigh", "where"]
STEPS = [10, 50, 90]
TONES = ["formal", "friendly", "funny"]
PICTURE_BYTES = 5_000_000

WAIT_UNTIL_SEEN = """
import os, sys, time
sys.path.insert(0, os.environ["MCP_SDK"])
import mcp_tool

def wait_until_seen():
    while not os.path.exists(os.path.join(os.environ["MCPGREEN_PROJECT_ROOT"], "seen")):
        time.sleep(0.01)
"""


def build(root: Path) -> ProjectBuilder:
    project = ProjectBuilder(root)
    project.tool(
        "greet",
        f"""#!{sys.executable}
import json, os
print("Hello", json.loads(os.environ["MCP_TOOL_ARGS_JSON"])["name"], end="")
""",
        description="Greets somebody",
        inputSchema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
    project.tool(
        "weigh",
        """echo '{"grams": 1200, "label": "Zürich"}'""",
        outputSchema={
            "type": "object",
            "properties": {"grams": {"type": "integer"}, "label": {"type": "string"}},
            "required": ["grams"],
        },
    )
    project.tool("broken", "echo 'the disk is on fire' >&2; exit 1")
    project.python_tool(
        "walk",
        f"""{WAIT_UNTIL_SEEN}
for step in {STEPS}:
    mcp_tool.progress(step, f"at {{step}}", 100)
wait_until_seen()
print("arrived", end="")
""",
        timeoutSecs=TOOL_DEADLINE_SECS,
    )
    project.python_tool(
        "narrate",
        f"""{WAIT_UNTIL_SEEN}
mcp_tool.log_debug("story", "a detail")
mcp_tool.log_warn("story", "a turn")
mcp_tool.log_error("story", {{"the": "end"}})
wait_until_seen()
print("told", end="")
""",
        timeoutSecs=TOOL_DEADLINE_SECS,
    )
    project.tool("endless", f"""cd '{root}'; sleep 600 & echo "$$ $!" > pids.new; mv pids.new pids; wait""")
    project.tool("where", """printf '%s' "$MCP_ROOTS_PATHS\"""")
    # Ready to be moved into tools/, in one step, while a client is connected.
    latecomer = project.write("aside/latecomer", "#!/bin/sh\nprintf 'better late'\n")
    latecomer.chmod(0o755)
    _add_resources(project)
    _add_prompt(project)
    return project


def add_picture(project: ProjectBuilder) -> str:
    """A large resource that is no text. Gives its SHA-256."""
    content = b"\x89PNG\r\n\x1a\n" + random.Random(5).randbytes(PICTURE_BYTES - 8)
    (project.root / "resources" / "picture.png").write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def uri_of(project: ProjectBuilder, name: str) -> str:
    return (project.root / "resources" / name).as_uri()


def change_letter(project: ProjectBuilder) -> None:
    (project.root / "aside" / "letter.new").replace(project.root / "resources" / "letter.txt")


def _add_resources(project: ProjectBuilder) -> None:
    project.write("resources/letter.txt", "Dear Zoë\n")
    project.write("resources/letter.txt.meta.json", json.dumps({"name": "letter", "mimeType": "text/plain"}))
    project.write("aside/letter.new", "Dear all\n")  # to be moved into its place, in one step
    project.write("resources/marker.txt", "0")
    words = {"name": "said", "uriTemplate": "echo://{word}", "arguments": {"word": {"enum": ["hello", "help"]}}}
    project.write("resources/said.meta.json", json.dumps(words))


def _add_prompt(project: ProjectBuilder) -> None:
    project.write("prompts/invite.txt", "Write a {{tone}} invitation for {{guest}}.")
    arguments = {
        "type": "object",
        "properties": {"guest": {"type": "string"}, "tone": {"type": "string", "enum": TONES}},
        "required": ["guest", "tone"],
    }
    project.write("prompts/invite.meta.json", json.dumps({"description": "Invites", "arguments": arguments}))


def server_command(project: ProjectBuilder) -> list[str]:
    return [str(command_of_tests()), "serve", "--project-root", str(project.root)]


def fresh_server_command(project: ProjectBuilder) -> list[str]:
    """As users have it: nothing is imported yet."""
    return [*SERVER, str(project.root)]


def server_environment() -> dict[str, str]:
    """In addition to the few variables that clients pass on by themselves."""
    return clean_environment()


def driven(driver: Path, mode: str, project: ProjectBuilder, *, url: str | None = None) -> Any:
    """What a client in TypeScript reports of its visit: to a server that it starts, or to that at `url`."""
    server = server_command(project) if url is None else [url]
    done = completed(
        [require_program("node"), driver, mode, project.root, *server], env=server_environment(), timeout=VISIT_SECS
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def processes_of(project: ProjectBuilder) -> list[str]:
    """Servers, tools and their children: all that name the project in their command line or environment."""
    root = str(project.root).encode()
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            command = Path(entry.path, "cmdline").read_bytes()
            environment = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is not ours
        if root in command or root in environment:
            found.append(f"{entry.name}: {command.replace(bytes(1), b' ').decode('utf-8', 'replace')}")
    return found
