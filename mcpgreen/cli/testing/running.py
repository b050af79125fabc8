"""`mcpgreen test`: run the tests of a project, and report them.

Tests run one after the other, through a real server in a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain
from typing import NamedTuple

from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import GREEN, RED, has_colour, painted, put, say, tell
from mcpgreen.cli.testing.client import Outcome, ProjectClient
from mcpgreen.cli.testing.expecting import problems_with
from mcpgreen.cli.testing.files import ToolTest, find_files, read_tests
from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.project.project import Project

STDERR_LINES = 10
LOOK_SECS = 0.5  # between two looks at files, with --watch
BAR_CHARS = 40
CLEAR_LINE = "\r\x1b[2K"
MADE_BY_RUNS = ("snapshots", "__pycache__")


class Result(NamedTuple):
    """A test has passed if there are no problems."""

    test: ToolTest
    outcome: Outcome
    problems: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """The lines about a test that failed: what differs, and the end of stderr."""
        said = self.outcome.stderr.rstrip("\n").splitlines()[-STDERR_LINES:] if self.problems else []
        return [*"\n".join(self.problems).splitlines(), *(f"stderr: {line}" for line in said if line.strip())]


def run(options: Options) -> int:
    """Return 1 if a test fails, 2 if there are no tests, or their files have mistakes."""
    project, _, _ = open_named(options)
    if options["--watch"]:
        return _run_after_changes(project, options)
    return _run_once(project, options)


def _run_after_changes(project: Project, options: Options) -> int:
    """Run the tests again whenever files of the project change, until Ctrl-C. Return the status of the last time."""
    tops = [project.tools_dir, project.resources_dir, project.prompts_dir, project.providers_dir, project.server_dir]
    tops.append(os.path.join(project.root, "tests"))
    status, tested = 0, None
    with suppress(KeyboardInterrupt):
        while True:
            while (found := survey(project, tops, without=MADE_BY_RUNS).fingerprint) == tested:
                time.sleep(LOOK_SECS)
            tested = found
            try:
                status = _run_once(project, options)
            except McpgreenError as error:
                tell(f"mcpgreen: error: {error}\n")
                status = 2
            tell("Waiting for changes; Ctrl-C ends.\n")
    return status


def _run_once(project: Project, options: Options) -> int:
    tests, faults = read_tests(find_files(project, options["PATH"]), project)
    tell("".join(f"mcpgreen: error: {fault}\n" for fault in faults))
    if faults:
        return 2
    wanted = options["-k"] or ""
    chosen = [test for test in tests if wanted.casefold() in f"{test.title} {test.tool}".casefold()]
    if not chosen:
        raise UsageError(f"No test matches -k {wanted}." if tests else "The files have no tests.")
    began_at = time.time()
    results = list(_reported(run_tests(chosen, project, updates=options["--update"]), len(chosen)))
    if options["--junit"]:
        from mcpgreen.cli.testing.junit import write_junit

        write_junit(options["--junit"], results, began_at=began_at)
    failed = sum(bool(result.problems) for result in results)
    counts = f"{len(results) - failed} passed" + f", {failed} failed" * bool(failed)
    text = f"{counts} in {time.time() - began_at:.1f} s"
    put(painted(text, RED if failed else GREEN, sys.stdout) + "\n", sys.stdout)
    return 1 if failed else 0


def run_tests(tests: Sequence[ToolTest], project: Project, *, updates: bool = False) -> Iterator[Result]:
    """Run the tests. Each uses the server of the test before it, if that is what it needs, and still there."""
    client, start = None, None
    with ExitStack() as servers:
        for test in tests:
            began_at = time.monotonic()
            try:
                if client is None or test.start != start:
                    servers.close()
                    client = servers.enter_context(closing(ProjectClient(project.root, **test.start)))
                    start = test.start
                outcome = client.call(test.tool, **test.call)
            except (NoAnswer, TimeoutError) as error:
                client = None
                lost = Outcome(secs=time.monotonic() - began_at)
                yield Result(test, lost, [f"the server did not answer: {error}"])
            else:
                yield Result(test, outcome, problems_with(outcome, test, project.root, updates=updates))


def _reported(results: Iterator[Result], total: int) -> Iterator[Result]:
    """Print the results while they come: at a terminal only failures, and a bar."""
    has_bar = has_colour(sys.stdout)
    for number, result in enumerate(chain([None], results)):
        put(CLEAR_LINE if has_bar else "", sys.stdout)
        if result is not None and (result.problems or not has_bar):
            _print(result)
        if has_bar and number < total:
            bar = "#" * (BAR_CHARS * number // total)
            put(f"[{bar:.<{BAR_CHARS}}] {number}/{total}", sys.stdout)
        if result is not None:
            yield result


def _print(result: Result) -> None:
    outcome, style = ("failed", RED) if result.problems else ("passed", GREEN)
    put(painted(outcome, style, sys.stdout), sys.stdout)
    say(f" {result.test.title} ({result.outcome.secs:.2f} s)\n")
    for line in result.lines:
        say(f"    {line}\n")
