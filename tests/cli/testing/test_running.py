"""`mcpgreen test` as a person runs it, and the fixture for pytest."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.test_commands import mcpgreen
from tests.support.programs import completed
from tests.support.project import ProjectBuilder
from tests.support.terminal import at_terminal
from tests.support.waiting import eventually, is_alive
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Wire, clean_environment, command_of_tests

ENV = {"MCPGREEN_LAUNCHER": str(command_of_tests())}


@pytest.fixture
def tested(project: ProjectBuilder) -> ProjectBuilder:
    project.tool("say", 'echo "Hello"; echo "a remark" >&2')
    project.write("tests/say.test.yaml", "tool: say\ntests:\n  - {name: says, expect: {text: Hello}}\n")
    return project


def test_what_differs_is_shown_with_the_end_of_stderr(tested: ProjectBuilder, tmp_path: Path) -> None:
    tested.write("tools/near.test.yaml", "tests: wrong place\n")
    tested.write("tools/x/near.test.yaml", "tool: say\ntests: [{name: near, expect: {text: {contains: Bye}}}]\n")
    report = tmp_path / "report.xml"
    done = mcpgreen("test", "--junit", str(report), cwd=tested.root, env=ENV)

    assert done.returncode == 1
    first, second, *details = done.stdout.splitlines()
    assert first.startswith("passed tests/say.test.yaml: says (")
    assert second.startswith("failed tools/x/near.test.yaml: near (")
    expected = ['    text: expected a text that contains "Bye"', '       found "Hello"', "    stderr: a remark"]
    assert details[:-1] == expected
    assert details[-1].startswith("1 passed, 1 failed in ")
    cases = ElementTree.parse(report).getroot().findall("testsuite/testcase")
    assert [(case.get("name"), len(case)) for case in cases] == [("says", 0), ("near", 1)]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-k", "nothing"], 2, "No test matches -k nothing."),
        (["missing.test.yaml"], 2, "missing.test.yaml: "),
        (["tools"], 2, "There are no files with tests: tools."),
    ],
)
def test_no_test_is_wrong_usage(tested: ProjectBuilder, words: list[str], status: int, said: str) -> None:
    done = mcpgreen("test", *words, cwd=tested.root)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_a_tool_that_hangs_and_a_server_that_ends_fail_only_their_tests(tested: ProjectBuilder) -> None:
    tested.tool("hang", 'echo $$ > "$MCPGREEN_PROJECT_ROOT/pid"; sleep 60')
    tested.tool("kill", "kill -9 $PPID")
    text = "tests:\n  - {name: hangs, tool: hang, expect: {withinSecs: 0.3}}\n  - {name: kills, tool: kill}\n"
    tested.write("tests/say.test.yaml", text + "  - {name: says, tool: say, expect: {text: Hello}}\n")
    done = mcpgreen("test", cwd=tested.root, env={**ENV, "MCPGREEN_WARM_PYTHON": "false"})

    lines = done.stdout.splitlines()
    assert lines[1] == "    the server did not answer: tools/call: no answer in time"
    assert lines[3].startswith("    the server did not answer: it exited without an answer")
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["failed", "failed", "passed", "1"]
    assert not is_alive(tested.read("pid"))


def test_files_that_change_are_tested_again(tested: ProjectBuilder) -> None:
    with Wire(tested.root, arguments=("test", "--watch"), env=ENV) as command:
        said = lambda: b"".join(iter(command._lines.queue)).decode()  # noqa: E731
        eventually(lambda: "1 passed in" in said() and "Waiting for changes" in command.stderr)
        tested.tool("say", "echo Bye")
        eventually(lambda: "1 failed in" in said() and command.stderr.count("Waiting for changes") == 2)
        tested.write("tests/say.test.yaml", "tool: say\ntests:\n  - {name: says, expect: {text: Bye}}\n")
        eventually(lambda: said().count("1 passed in") == 2)
        command.process.send_signal(signal.SIGINT)
        assert command.wait() in (0, 130)


def test_the_plugin_loads_nothing_until_a_test_needs_it(tested: ProjectBuilder) -> None:
    """Other packages are loaded by every run of pytest in an environment that has mcpgreen."""
    tested.write(
        "tests/test_say.py",
        "import sys\n"
        "def test_without():\n    ours = {name for name in sys.modules if name.startswith('mcpgreen')}\n"
        "    assert ours == {'mcpgreen', 'mcpgreen.testing'}\n"
        "def test_with(mcpgreen_client):\n    assert mcpgreen_client.call('say').text == 'Hello'\n"
        "    assert 'gevent' not in sys.modules\n",
    )
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "--rootdir", str(tested.root), str(tested.root / "tests")]
    done = completed([sys.executable, "-m", "pytest", *options], env=clean_environment(ENV), cwd=tested.root)
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("revision", [LATEST_HANDSHAKE, MODERN])
def test_questions_and_tasks_come_to_their_end(project: ProjectBuilder, revision: str) -> None:
    asking = "import mcp_tool\nmcp_tool.progress(50, 'half')\nprint(mcp_tool.confirm('Sure?'), "
    project.python_tool("asks", asking + "mcp_tool.sample('Say hi', max_tokens=9))", task="always")
    answers = "{sure: {action: accept, content: {confirmed: true}}, say hi: Hi!}"
    # Of a task, a client sees only the messages that last until it looks.
    expect = "{text: {matches: '^True .*Hi!'}" + (", progress: true}" if revision == LATEST_HANDSHAKE else "}")
    test = f"{{name: asks, client: {{revision: '{revision}'}}, answers: {answers}, expect: {expect}}}"
    project.write("tests/asks.test.yaml", f"tool: asks\ntests:\n  - {test}\n")
    done = mcpgreen("test", cwd=project.root, env=ENV)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_a_terminal_shows_failures_and_a_bar(tested: ProjectBuilder) -> None:
    tested.write("tests/say.test.yaml", "tool: say\ntests: [{name: one}, {name: two, expect: {text: x}}]\n")
    said = at_terminal(["test"], cwd=tested.root, env=ENV).raw
    bars = re.findall(r"\[([#.]+)\] (\d)/2", said)
    assert [(len(bar), bar.count("#"), number) for bar, number in bars] == [(40, 0, "0"), (40, 20, "1")]
    assert (": one" in said, "tests/say.test.yaml: two" in said, "1 passed, 1 failed" in said) == (False, True, True)
