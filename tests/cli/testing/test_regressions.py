"""What somebody breaks in a tool is noticed, by its tests and by a session that was recorded before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.test_commands import mcpgreen
from tests.cli.testing.small_project import (
    REGRESSIONS,
    TOOLS,
    correct_project,
    plant_regressions,
    record_session,
    tools_in_project,
)
from tests.support.project import ProjectBuilder
from tests.support.wire import command_of_tests

# The servers of these commands begin at once.
ENV = {"MCPGREEN_LAUNCHER": str(command_of_tests()), "WHO": "Ada"}
CALLED = [*REGRESSIONS, *TOOLS]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProjectBuilder, Path]]:
    """A project in which much is broken, and a recording from before that."""
    directory = tmp_path_factory.mktemp("broken")
    project, session = correct_project(directory / "project"), directory / "session.jsonl"
    record_session(project, session)
    same = mcpgreen("replay", str(session), cwd=project.root, env=ENV)
    assert (same.returncode, same.stdout) == (0, "60 answers, 0 differences\n"), same.stdout
    plant_regressions(project)
    yield project, session


def test_twenty_regressions_are_caught_by_tests(broken: tuple[ProjectBuilder, Path], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    done = mcpgreen("test", "--junit", str(report), cwd=broken[0].root, env=ENV)

    cases = ElementTree.parse(report).getroot().findall("testsuite/testcase")
    tools = [(case.attrib["classname"].removeprefix("tests/").removesuffix(".test.yaml"), len(case)) for case in cases]
    failed = {tool for tool, problems in tools if problems}
    assert (done.returncode, failed, len(failed)) == (1, {*REGRESSIONS}, 20), done.stdout
    assert {tool for tool, _ in tools} == tools_in_project().keys()


def test_twenty_regressions_are_caught_by_a_replay(broken: tuple[ProjectBuilder, Path]) -> None:
    project, session = broken
    done = mcpgreen("replay", str(session), cwd=project.root, env=ENV)

    lines = done.stdout.splitlines()
    differing = {
        name
        for name in CALLED
        for line in lines
        if line.startswith(f"differs tools/call {name} (") or f" for {name} " in line
    }
    assert (done.returncode, differing, len(differing)) == (1, {*REGRESSIONS}, 20), done.stdout
