"""Every command at a terminal: what a person sees of it, with and without colour, 80 and 120 columns wide.

`…` in a screen is what differs from machine to machine. `list`, `run-tool` and forms are tried more closely in
test_at_terminal.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from mcpgreen.cli.commands import COMMANDS
from tests.support.project import ProjectBuilder
from tests.support.terminal import Seen, at_terminal

NARROW, WIDE = 80, 120
WAITING = "⠋ Copying mcpgreen and its packages ..."
QUESTIONS = [("Title [Other]: ", "\n"), ("What is it for", "\n"), ("Language of the first tool", "sh\n")]


class Screen(NamedTuple):
    command: str
    width: int
    seen: str
    status: int = 0
    answers: list[tuple[str, str]] = []
    has_colour: bool = False


SCREENS = [
    Screen("serve", NARROW, """\
mcpgreen serves demo: 1 tool, 1 resource, 0 templates, 1 prompt
from PROJECT

It waits for a client that speaks MCP on its stdin; Ctrl-C ends it. In another terminal, try:
  mcpgreen list --project-root PROJECT
  mcpgreen run-tool greet --project-root PROJECT
^C""", 130, [("run-tool greet", "\x03")]),
    Screen("config --client cursor --install", WIDE, """\
--- /dev/null
+++ PROJECT/.cursor/mcp.json
@@ -0,0 +1,12 @@
+{
+  "mcpServers": {
+    "demo": {
…
Installed demo for Cursor: PROJECT/.cursor/mcp.json
Backup: none, the file is new"""),
    Screen("list prompts", NARROW, """\
prompts (1)

  name     description   arguments   from
 ───────────────────────────────────────────────────────
  letter   A letter      to!         prompts/letter.txt""", has_colour=True),
    Screen("run-tool greet name=Ada", WIDE, "Hello!"),
    Screen("read note", NARROW, "a note"),
    Screen("prompt letter to=Ada", WIDE, "Dear Ada"),
    Screen("complete prompt:letter to", NARROW, "(nothing)", has_colour=True),
    Screen("new other", WIDE, """\
Title [Other]:
What is it for [The tools of Other]:
Language of the first tool (bash, sh, python, node, perl, ruby) [bash]: sh
Created project other at PROJECT/other
  .gitignore
  README.md
  server.d/schemas/server.schema.json
  server.d/server.meta.json
  test/README.md
  test/hello.sh
  test/run.sh
  tools/hello.sh

Next:
  cd other
  …mcpgreen run-tool hello""", answers=QUESTIONS),
    Screen("init --no-hello", NARROW, """\
Created .gitignore
Created README.md
Created server.d/schemas/server.schema.json
Created test/README.md
Created test/run.sh
Skipped existing server.d/server.meta.json
Initialized project at PROJECT"""),
    Screen("scaffold tool count", WIDE, """\
Scaffolded tool count at tools/count.sh
  tools/count.sh
Try it: …mcpgreen run-tool count"""),
    Screen("wrap --makefile Makefile", NARROW, """\
PROJECT/tools/make-hello.py
PROJECT/tools/make-hello.meta.json
…"""),
    Screen("deps", NARROW, "No tool names packages: none has a # /// script header, and there is no requirements.txt."),
    Screen("validate", WIDE, """\
Project: PROJECT
✓ server.d/server.meta.json
✓ tool greet
✓ resource note
✓ prompt letter
0 errors, 0 warnings"""),
    Screen("lint", NARROW, """\
Project: PROJECT
✓ tool greet: about 37 tokens
✓ all tools: about 37 tokens
✓ resource note
✓ prompt letter
0 errors, 0 warnings"""),
    Screen("doctor", WIDE, """\
✓ python: Python …
✓ packages: gevent …
✓ loop: gevent …
✓ project: demo at PROJECT
✓ permissions: only you can change what is run; temporary files go to …
✓ settings: all are defaults
✓ hooks: there are none
✓ registry: .registry is not there yet; lists are kept in it when something is listed
✓ items: 1 tool, 1 resource, 0 templates, 1 prompt
✓ client: no client has an entry demo; mcpgreen config --client NAME --install writes one
…"""),
    Screen("health", NARROW, '{"status":"ok","mode":"full",…}'),
    Screen("scan", WIDE, '{"tools":{"status":"ok","count":1,"error":null},…}'),
    Screen("registry status", NARROW, '{"projectRoot":"PROJECT",…}'),
    Screen("bundle --platform beos", WIDE, """\
mcpgreen: error: --platform beos is not known; choose linux, darwin, all.""", 2),
    Screen("vendor", NARROW, f"""\
{WAITING}…
Vendored mcpgreen … to PROJECT/.mcpgreen
Serve with PROJECT/run-server.sh""", has_colour=True),
    Screen("server-json", WIDE, """\
mcpgreen: error: demo: the registry needs a namespace that is yours; give --name io.github.YOU, or write websiteUrl or \
repository into server.d/server.meta.json""", 1),
    Screen("schema", WIDE, """\
tool      tools/**/*.meta.json: a tool
prompt    prompts/**/*.meta.json: a prompt
…"""),
    Screen("sdk-path", NARROW, "…/mcpgreen/sdk/python"),
    Screen("completion fish", NARROW, """\
function _mcpgreen
…
complete -c mcpgreen -f -a '(_mcpgreen)'"""),
]  # fmt: skip


@pytest.fixture
def demo(tmp_path: Path) -> ProjectBuilder:
    project = ProjectBuilder(tmp_path / "demo")
    project.write("server.d/server.meta.json", '{"name": "demo", "version": "1.0.0", "description": "A demo"}\n')
    name = {"type": "string", "description": "Who it is"}
    schema = {"type": "object", "properties": {"name": name}}
    project.tool("greet", "echo 'Hello!'", description="Greet somebody", inputSchema=schema)
    arguments = [{"name": "to", "description": "Who gets it", "required": True}]
    project.write("prompts/letter.meta.json", json.dumps({"description": "A letter", "arguments": arguments}))
    project.write("prompts/letter.txt", "Dear {{to}}\n")
    project.resource("note.txt", "a note\n")
    project.write("Makefile", "hello: ## Say hello\n\techo hello\n")
    return project


def seen_of(demo: ProjectBuilder, screen: Screen, *, width: int, has_colours: bool) -> tuple[str, Seen]:
    env = {} if has_colours else {"NO_COLOR": "1"}
    seen = at_terminal(screen.command.split(), cwd=demo.root, width=width, env=env, answers=screen.answers)
    lines = [line.rstrip() for line in seen.text.replace(str(demo.root), "PROJECT").splitlines()]
    return "\n".join(lines).strip("\n"), seen


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.command)
def test_what_a_person_sees(demo: ProjectBuilder, screen: Screen) -> None:
    shown, seen = seen_of(demo, screen, width=screen.width, has_colours=screen.width == NARROW)
    assert re.fullmatch(re.escape(screen.seen).replace("…", ".*"), shown, re.DOTALL), shown
    assert (seen.status, "\x1b[" in seen.raw) == (screen.status, screen.has_colour)


def test_every_command_has_a_screen() -> None:
    assert {screen.command.split()[0] for screen in SCREENS} == {command.name for command in COMMANDS}
