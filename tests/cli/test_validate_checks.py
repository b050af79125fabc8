"""`mcpgreen validate` says no ✓ of what will not work."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.test_commands import mcpgreen
from tests.cli.test_validate import SCHEMA, findings, good_tool, said
from tests.support.project import ProjectBuilder

HOOKS = ("register.sh", "policy.sh", "env.sh", "health-checks.sh")
Break = Callable[[ProjectBuilder], Any]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_bash_cannot_read(project: ProjectBuilder, hook: str) -> None:
    project.write(f"server.d/{hook}", "#!/bin/bash\nif then\n").chmod(0o644)
    status, report = findings(project)

    assert status == 1
    (error,) = said(report, "error")
    assert error.startswith(f"server.d/{hook}: line 2: syntax error near")
    assert f"server.d/{hook}" not in said(report, "ok")


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_can_be_run(project: ProjectBuilder, hook: str) -> None:
    project.write(f"server.d/{hook}", "#!/bin/bash\n").chmod(0o644)

    assert f"server.d/{hook}" in said(findings(project, "--strict")[1], "ok")


def test_a_register_sh_that_is_no_script_is_ignored_by_the_server(project: ProjectBuilder) -> None:
    project.write("server.d/register.sh", "true\n").chmod(0o644)
    reason = "it is ignored: it is not executable (chmod +x) and has no shebang"
    status, report = findings(project)
    assert (status, said(report, "error")) == (1, [f"server.d/register.sh: {reason}"])

    (project.root / "server.d" / "register.sh").chmod(0o755)
    assert findings(project)[0] == 0


def test_an_env_sh_that_fails_is_ignored_by_the_server(project: ProjectBuilder) -> None:
    project.write("server.d/env.sh", "exit 3\n").chmod(0o644)
    status, report = findings(project)

    assert (status, said(report, "error")) == (1, ["server.d/env.sh: it is ignored: it exited with status 3"])
    assert "server.d/env.sh" not in said(report, "ok")


def test_settings_that_let_clients_see_too_much_or_do_nothing(project: ProjectBuilder) -> None:
    token = {"MCPGREEN_REMOTE_TOKEN": "correct-horse-battery-staple-4711"}
    _, report = findings(project, env={**token, "MCPGREEN_CLIENT_ROOTS": "trust", "MCPGREEN_RESOURCES_ROOTS": "/proc"})
    left_out, trusting = (text for text in said(report, "warning") if "roots" in text)

    assert left_out == "resources_roots: /proc is ignored: files in /proc, /sys and /dev are never served"
    assert trusting.startswith("client_roots is trust") and "MCPGREEN_CLIENT_ROOTS=within" in trusting
    assert not [text for text in said(findings(project, env=token)[1], "warning") if "roots" in text]


@pytest.mark.parametrize("variable", ["MCPBASH_REMOTE_TOKEN", "MCPBASH_ROOTS"])
def test_what_keeps_a_server_from_starting(project: ProjectBuilder, variable: str) -> None:
    status, report = findings(project, env={variable: "nope"})

    assert (status, report["errors"]) == (1, 1)


# --- providers -------------------------------------------------------------------------------------------------------


def absent_provider(project: ProjectBuilder) -> str:
    return "there is no provider for it: it needs an executable file providers/engine, with or without a suffix"


def provider_without_bit(project: ProjectBuilder) -> str:
    project.write("providers/engine.py", "print()")
    return "there is no provider for it: providers/engine.py is neither executable nor a script (chmod +x)"


def open_provider(project: ProjectBuilder) -> str:
    project.provider("engine.sh", "echo", mode=0o777)
    fault = "it can be written to by others"
    return f"Resource provider 'engine' path rejected by policy: {fault}"


def provider_without_interpreter(project: ProjectBuilder) -> str:
    project.provider("engine.py", "#!/no/such/python\n")
    return "its provider providers/engine.py needs the interpreter /no/such/python, which does not exist"


@pytest.mark.parametrize(
    "break_it", [absent_provider, provider_without_bit, open_provider, provider_without_interpreter]
)
@pytest.mark.parametrize(
    ("word", "fields"), [("resource", {"uri": "engine://a"}), ("template", {"uriTemplate": "engine://{a}"})]
)
def test_a_resource_whose_provider_cannot_provide(
    project: ProjectBuilder, break_it: Callable[[ProjectBuilder], str], word: str, fields: Any
) -> None:
    project.described("state", **fields)
    reason = break_it(project)
    status, report = findings(project)

    assert (status, said(report, "error")) == (1, [f"{word} state: {reason}"])
    assert f"{word} state" not in said(report, "ok")


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("file:///etc/hostname", "Resource outside allowed roots"),
        ("file://./resources/absent.txt", "Resource not found"),
    ],
)
def test_a_file_that_cannot_be_read_now(project: ProjectBuilder, uri: str, reason: str) -> None:
    project.described("note", uri=uri)
    status, report = findings(project)

    assert (status, said(report, "warning")) == (0, [f"resource note: it cannot be read: {reason}"])


# --- scripts ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_tool_of_another_user_will_be_refused(project: ProjectBuilder) -> None:
    os.chown(good_tool(project), 12345, -1)
    status, report = findings(project)

    assert (status, said(report, "error")) == (1, ["tool greet: calls will fail: it belongs to another user"])
    assert "tool greet" not in said(report, "ok")


def test_a_tool_that_others_may_write_to_is_not_well(project: ProjectBuilder) -> None:
    good_tool(project).chmod(0o777)

    assert "tool greet" not in said(findings(project)[1], "ok")


@pytest.mark.parametrize(
    ("first_line", "fault"),
    [
        ("#!/bin/sh\r", "has Windows line endings, so"),
        ("#!/no/such/shell", "needs the interpreter /no/such/shell, which does not exist"),
        ("#!/usr/bin/env no-such-shell", "needs the interpreter no-such-shell, which is not on the PATH"),
    ],
)
def test_a_first_line_that_cannot_be_obeyed(project: ProjectBuilder, first_line: str, fault: str) -> None:
    project.tool("greet", f"{first_line}\necho", description="Greets", inputSchema=SCHEMA)
    status, report = findings(project)

    (error,) = said(report, "error")
    assert status == 1
    assert error.startswith(f"tool greet: tools/greet {fault}")


def test_a_text_without_an_interpreter(project: ProjectBuilder) -> None:
    for name in ("greet", "fine.sh", "snake.py"):
        project.write(f"tools/{name}", "print('hi')\n").chmod(0o755)
        stem = name.partition(".")[0]
        project.write(f"tools/{stem}.meta.json", json.dumps({"description": "x", "inputSchema": SCHEMA}))
    (project.root / "tools" / "binary").write_bytes(b"\x7fELF\0\0")
    (project.root / "tools" / "binary").chmod(0o755)
    project.write("tools/binary.meta.json", json.dumps({"description": "x", "inputSchema": SCHEMA}))

    assert said(findings(project)[1], "warning") == ["tool greet: tools/greet has no shebang, so sh runs it"]


# --- prompts ---------------------------------------------------------------------------------------------------------


def test_placeholders_that_are_no_arguments(project: ProjectBuilder) -> None:
    project.prompt("letter.txt", "Dear {{ nmae }}, {{nmae}} {{name}} {{xyz}} ${HOME}", arguments=[{"name": "name"}])
    status, report = findings(project)

    assert status == 0
    assert said(report, "warning") == [
        "prompt letter: {{nmae}} is not a declared argument, so clients cannot fill it in; did you mean name?",
        "prompt letter: {{xyz}} is not a declared argument, so clients cannot fill it in",
    ]


# --- mending, and counting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "verdict"),
    [("", "0 errors, 0 warnings"), ("x\n", "0 errors, 1 warning"), ("x\ny\n", "0 errors, 2 warnings")],
)
def test_the_last_line_counts(project: ProjectBuilder, env: str, verdict: str) -> None:
    project.write("server.d/env", env)
    done = mcpgreen("validate", "--project-root", str(project.root))

    assert done.stdout.splitlines()[-1] == verdict
