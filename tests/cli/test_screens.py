"""Every command at a terminal: what a person sees of it, with and without colour, 80 and 120 columns wide.

`…` in a screen is what differs from machine to machine. `list`, `run-tool` and forms are tried more closely in
test_at_terminal.py. The screens of a project with faults are kept in `screens/`: `.ansi` with colours (`cat` shows
them), `.txt` without. After a change of the output on purpose, `WRITE_SCREENS=1` makes the tests write them
anew: look at the difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from mcpgreen.cli.commands import COMMANDS
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.terminal import OURS, Seen, at_terminal

NARROW, WIDE = 80, 120
WAITING = "⠋ Copying mcpgreen and its packages ..."
QUESTIONS = [("Title [Other]: ", "\n"), ("Description", "\n"), ("Language of the first tool", "sh\n")]


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

It is waiting for an MCP client on stdin; press Ctrl-C to stop it. In another terminal, try:
  mcpgreen list --project-root PROJECT
  mcpgreen run-tool greet --project-root PROJECT
^C""", 130, [("run-tool greet", "\x03")]),
    Screen("worker", WIDE, "mcpgreen: error: A worker needs a fleet: --fleet URL, or MCPGREEN_FLEET_URL.", 2),
    Screen("fleet", WIDE, "mcpgreen: error: There is no fleet: --fleet URL, or MCPGREEN_FLEET_URL.", 2),
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
    Screen("tasks", NARROW, """\
No tasks are stored for PROJECT. A call becomes a task if the client supports tasks and the tool takes long.""",
           has_colour=True),
    Screen("read note", NARROW, "a note"),
    Screen("prompt letter to=Ada", WIDE, "Dear Ada"),
    Screen("complete prompt:letter to", NARROW, "(nothing)", has_colour=True),
    Screen("new other", WIDE, """\
Title [Other]:
Description [Tools for Other]:
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
Skipped existing server.d/server.meta.json
Left out test/: it could get in the way of make test. To add it: …mcpgreen scaffold test
Initialized project at PROJECT"""),
    Screen("scaffold tool count", WIDE, """\
Scaffolded tool count at tools/count.sh
  tools/count.sh
Edit tools/count.sh
Try it: …mcpgreen run-tool count"""),
    Screen("wrap --makefile Makefile", NARROW, """\
PROJECT/tools/make-hello.py
PROJECT/tools/make-hello.meta.json
…"""),
    Screen("deps", NARROW, "No tool needs packages: none has a # /// script header, and there is no requirements.txt."),
    Screen("health", NARROW, '{"status":"ok","mode":"full",…}'),
    Screen("scan", WIDE, '{"tools":{"status":"ok","count":1,"error":null},…}'),
    Screen("registry status", NARROW, '{"projectRoot":"PROJECT",…}'),
    Screen("bundle --platform beos", WIDE, """\
mcpgreen: error: --platform beos is not a known platform; choose linux, darwin, all.""", 2),
    Screen("vendor", NARROW, f"""\
{WAITING}…
Vendored mcpgreen … to PROJECT/.mcpgreen
Serve with PROJECT/run-server.sh""", has_colour=True),
    Screen("server-json", WIDE, """\
mcpgreen: error: demo: the registry needs your namespace; give --name io.github.YOU, or set websiteUrl or \
repository in server.d/server.meta.json""", 1),
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


KEPT = Path(__file__).parent / "screens"
FAULTY = ("validate", "lint", "doctor", "list", "run-tool latin what=tea", "--help", "run-tool --help")
OF_MACHINE = re.compile(r"(✓\S* (?:python|packages|loop|jq|bash|permissions): )[^\n]*(?:\n  [^\n]*)*")


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


@pytest.fixture(scope="module")
def shop() -> Iterator[ProjectBuilder]:
    """A project with many faults. Its path is always as long, because lines are broken by it."""
    root = Path(tempfile.mkdtemp(prefix="mcpgreen-", dir="/tmp")).resolve()
    project = ProjectBuilder(root)
    project.write("server.d/server.meta.json", '{"name": "shop", "version": "1.0.0"}\n')
    text = {"type": "string", "description": "A filter"}
    names = ["text", "author", "since", "until", "branch", "path", "size", "colour", "shop", "limit", "sort"]
    schema = {"type": "object", "properties": dict.fromkeys(names, text), "required": ["until"]}
    project.tool("search", "echo found", description="Find orders", inputSchema=schema)
    what = {"type": "object", "properties": {"what": {"type": "string"}}}
    project.tool("latin", r"printf 'caf\xe9\n'", descripton="A word", inputSchema=what)
    broken = {"type": "object", "properties": {"what": {"type": "integr"}}}
    project.tool("order", "echo ordered", description="Order something", inputSchema=broken)
    project.write("tools/greet.sh", "#!/bin/bash\r\necho hello\r\n").chmod(0o755)
    wrong = {"description": "Count words", "inputSchema": {"type": "object", "required": ["wrods"]}}
    project.write("tools/count.meta.json", json.dumps(wrong, indent=2))
    project.write("tools/count.py", "#!/usr/bin/env python3\nfrom mcp_tool import emit_txt\n").chmod(0o755)
    project.write("tools/half.py", "#!/usr/bin/env python3\n")
    project.write("prompts/letter.meta.json", '{"description": "A letter", "arguments": [{"name": "to"}]}')
    project.write("prompts/letter.txt", "Dear {{too}}\n")
    project.write("providers/stock.sh", "#!/bin/sh\r\necho 1\r\n").chmod(0o755)
    for name in ("tea", "milk"):
        project.write(f"resources/{name}.meta.json", json.dumps({"name": name, "uri": f"stock://{name}"}))
    yield project
    shutil.rmtree(root)


@pytest.mark.parametrize("command", FAULTY)
@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("suffix", ["ansi", "txt"])
def test_the_screen_is_as_it_is_kept(shop: ProjectBuilder, command: str, width: int, suffix: str) -> None:
    env = {"TMPDIR": "/tmp", **({} if suffix == "ansi" else {"NO_COLOR": "1"})}
    raw = at_terminal(command.split(), cwd=shop.root, width=width, env=env).raw
    shutil.rmtree(shop.root / ".registry", ignore_errors=True)
    seen = OF_MACHINE.sub(r"\1…", raw.replace("\r\n", "\n").replace(str(shop.root), "PROJECT"))
    kept = KEPT / f"{command.replace(' --', '-').split()[0].strip('-')}-{width}.{suffix}"
    if os.environ.get("WRITE_SCREENS"):
        kept.write_text(seen, encoding="utf-8")
    assert seen == kept.read_text(encoding="utf-8")
    assert ("\x1b[" in seen) == (suffix == "ansi")


@pytest.mark.parametrize("command", ["validate", "lint", "doctor"])
def test_a_program_that_reads_it_gets_the_same_words(shop: ProjectBuilder, command: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(shop.root), "TMPDIR": "/tmp"}
    done = completed([*OURS, command], cwd=shop.root, env=env)
    shutil.rmtree(shop.root / ".registry", ignore_errors=True)
    kept = (KEPT / f"{command}-{NARROW}.txt").read_text(encoding="utf-8")
    assert OF_MACHINE.sub(r"\1…", done.stdout.replace(str(shop.root), "PROJECT")) == kept


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
    shown = {command.split()[0] for command in (*FAULTY, *(screen.command for screen in SCREENS))}
    assert shown == {command.name for command in COMMANDS} | {"--help"}
