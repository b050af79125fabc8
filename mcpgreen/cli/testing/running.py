"""`mcpgreen test`: run the tests of a project, and report them.

Tests run one after the other, through a real server in a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import NamedTuple

from mcpgreen.catalog.tree_scan import survey
from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import DIM, GREEN, RED, harmless, has_colour, painted, print_json, put, say, tell
from mcpgreen.cli.testing.client import PATIENCE_SECS, ProjectClient
from mcpgreen.cli.testing.expecting import problems_with
from mcpgreen.cli.testing.files import ToolTest, find_files, read_tests
from mcpgreen.errors import McpgreenError, UsageError
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

STDERR_LINES = 10
LOOK_SECS = 0.5  # between two looks at files, with --watch
MADE_BY_RUNS = ("snapshots", "__pycache__")
STYLES = {"passed": GREEN, "failed": RED, "skipped": DIM}


class Result(NamedTuple):
    test: ToolTest
    problems: Sequence[str] = ()
    secs: float = 0.0
    stderr: str = ""

    @property
    def outcome(self) -> str:
        return "skipped" if self.test.skip is not None else "failed" if self.problems else "passed"

    @property
    def stderr_lines(self) -> list[str]:
        lines = self.stderr.rstrip("\n").splitlines()[-STDERR_LINES:] if self.problems else []
        return [f"stderr: {line}" for line in lines if line.strip()]

    def as_json(self) -> Json:
        about = {"file": self.test.shown_file, "line": self.test.line, "name": self.test.name, "tool": self.test.tool}
        return {**about, "outcome": self.outcome, "secs": round(self.secs, 3), "problems": list(self.problems)}


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
            found = survey(project, tops, without=MADE_BY_RUNS).fingerprint
            if found == tested:
                time.sleep(LOOK_SECS)
                continue
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
    for fault in faults:
        tell(f"mcpgreen: error: {fault}\n")
    if faults:
        return 2
    wanted = options["-k"] or ""
    chosen = [test for test in tests if has_words(f"{test.title} {test.tool}", wanted)]
    if not chosen:
        raise UsageError(f"No test matches -k {wanted}." if tests else "The files have no tests.")
    began_at = time.time()
    results = run_tests(chosen, project, updates=options["--update"])
    done = list(results if options["--json"] else _reported(results, len(chosen)))
    if options["--junit"]:
        from mcpgreen.cli.testing.junit import write_junit

        write_junit(options["--junit"], done, began_at=began_at)
    counts = {outcome: sum(result.outcome == outcome for result in done) for outcome in STYLES}
    secs = time.time() - began_at
    if options["--json"]:
        print_json({**counts, "secs": round(secs, 3), "tests": [result.as_json() for result in done]})
    else:
        text = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        put(painted(f"{text} in {secs:.1f} s", RED if counts["failed"] else GREEN, sys.stdout) + "\n", sys.stdout)
    return 1 if counts["failed"] else 0


def has_words(title: str, expression: str) -> bool:
    """Tell whether a title fits words joined by `and`, `or` and `not`, of which `or` binds least."""

    def fits(term: str) -> bool:
        word = term.strip().removeprefix("not ").strip()
        return (word in title.casefold()) != term.strip().startswith("not ")

    return any(all(map(fits, each.split(" and "))) for each in expression.casefold().split(" or "))


def run_tests(tests: Sequence[ToolTest], project: Project, *, updates: bool = False) -> Iterator[Result]:
    """Run the tests. Each uses the server of the test before it, if that is what it needs, and still there."""
    client, start = None, None
    with ExitStack() as servers:
        for test in tests:
            if test.skip is not None:
                yield Result(test)
                continue
            began_at = time.monotonic()
            try:
                if client is None or test.start != start:
                    servers.close()
                    client = servers.enter_context(closing(ProjectClient(project.root, **test.start)))
                    start = test.start
                within_secs = test.expect.get("withinSecs", PATIENCE_SECS)
                outcome = client.call(test.tool, test.arguments, answers=test.answers, within_secs=within_secs)
            except (NoAnswer, TimeoutError) as error:
                client = None
                yield Result(test, [f"the server did not answer: {error}"], time.monotonic() - began_at)
            else:
                problems = problems_with(outcome, test, project.root, updates=updates)
                yield Result(test, problems, outcome.secs, outcome.stderr)


def _reported(results: Iterator[Result], total: int) -> Iterator[Result]:
    """Print the results while they come: at a terminal only those that matter, and a bar."""
    if not has_colour(sys.stdout):
        for result in results:
            _print(result)
            yield result
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("", total=total)
        for result in results:
            progress.update(task, advance=1, description=harmless(result.test.title))
            if result.outcome != "passed":
                progress.stop()
                _print(result)
                progress.start()
            yield result


def _print(result: Result) -> None:
    style = STYLES[result.outcome]
    put(painted(result.outcome, style, sys.stdout), sys.stdout)
    more = f": {result.test.skip}" if result.test.skip else f" ({result.secs:.2f} s)"
    say(f" {result.test.title}{more}\n")
    for line in "\n".join([*result.problems, *result.stderr_lines]).splitlines():
        say(f"    {line}\n")
