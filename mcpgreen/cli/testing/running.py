"""`mcpgreen test`: run the tests of a project, and report them.

Tests run one after the other, each through a real server in a process of its own. Tests with the same environment and
client share a server.
"""

from __future__ import annotations

import ast
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import DIM, GREEN, RED, harmless, has_colour, painted, print_json, put, say, tell
from mcpgreen.cli.testing.client import PATIENCE_SECS, Client
from mcpgreen.cli.testing.expecting import problems_with
from mcpgreen.cli.testing.files import ToolTest, find_files, read_tests
from mcpgreen.errors import UsageError
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json

STDERR_LINES = 10
LOGIC = ("and", "or", "not", "(", ")")
WORD = re.compile(r"[()]|[^\s()]+")
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
    matches = matcher_of(options["-k"] or "")
    project, _, _ = open_named(options)
    if options["--watch"]:
        from mcpgreen.cli.testing.watching import whenever_files_change

        return whenever_files_change(project, lambda: _run_once(project, options, matches))
    return _run_once(project, options, matches)


def _run_once(project: Project, options: Options, matches: Callable[[str], bool]) -> int:
    tests, faults = read_tests(find_files(project, options["PATH"]), project)
    for fault in faults:
        tell(f"mcpgreen: error: {fault}\n")
    if faults:
        return 2
    chosen = [test for test in tests if matches(f"{test.title} {test.tool}")]
    if not chosen:
        raise UsageError(f"No test matches -k {options['-k']}." if tests else "The files have no tests.")
    began_at = time.time()
    results = run_tests(chosen, project, updates=options["--update"])
    done = list(results if options["--json"] else _reported(results, len(chosen)))
    places = {test.title: number for number, test in enumerate(chosen)}
    done.sort(key=lambda result: places[result.test.title])
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


def run_tests(tests: Sequence[ToolTest], project: Project, *, updates: bool = False) -> Iterator[Result]:
    """Run the tests, in groups that can share a server."""
    groups: dict[str, list[ToolTest]] = {}
    for test in tests:
        groups.setdefault(test.start, []).append(test)
    for group in groups.values():
        client: Client | None = None
        try:
            for test in group:
                if test.skip is not None:
                    yield Result(test)
                    continue
                began_at = time.monotonic()
                try:
                    client = client or _client_for(test, project)
                    yield _result_of(test, client, project, updates=updates)
                except NoAnswer as error:
                    if client is not None:
                        client.close()
                        client = None
                    yield Result(test, [f"the server did not answer: {error}"], time.monotonic() - began_at)
        finally:
            if client is not None:
                client.close()


def _client_for(test: ToolTest, project: Project) -> Client:
    return Client(project.root, environment=test.environment, revision=test.revision, capabilities=test.capabilities)


def _result_of(test: ToolTest, client: Client, project: Project, *, updates: bool) -> Result:
    within_secs = test.expect.get("withinSecs", PATIENCE_SECS)
    outcome = client.call(test.tool, test.arguments, answers=test.answers, within_secs=within_secs)
    problems = problems_with(outcome, test, project.root, updates=updates)
    return Result(test, problems, outcome.secs, outcome.stderr)


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


def matcher_of(expression: str) -> Callable[[str], bool]:
    """Return whether a title fits words joined by `and`, `or`, `not` and brackets. Raises UsageError."""
    words = WORD.findall(expression)
    # Python knows how to read it, with a number for each word.
    text = " ".join(word if word in LOGIC else str(number) for number, word in enumerate(words))
    unclear = UsageError(f"-k {expression}: write words with and, or, not and brackets between them.")

    def holds(node: ast.expr, title: str) -> bool:
        if isinstance(node, ast.BoolOp):
            values = [holds(each, title) for each in node.values]
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            return not holds(node.operand, title)
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return words[node.value].casefold() in title.casefold()
        raise unclear

    if not words:
        return lambda title: True
    try:
        tree = ast.parse(text, mode="eval").body
        holds(tree, "")  # before anything runs
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise unclear from error
    return lambda title: holds(tree, title)
