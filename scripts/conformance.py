"""`make conformance`: let the official conformance suite judge the server, and show what it says.

The fixtures are `tests/conformance/project`; it is served over HTTP from a copy, because some of its tools change it.

Rule: the suite judges, this only counts. There are no exceptions: each required scenario has to pass, and each of an
extension that we offer, where a check that the suite skips counts as failed. The suite gives some answers half a
second: on a busy machine that is too short, so what fails is tried again, and the table says how often. Scenarios that
are run but not required are shown, with the reason if one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import yaml  # type: ignore[import-untyped, unused-ignore]

CHECKOUT = Path(__file__).resolve().parent.parent
HOME = CHECKOUT / "tests" / "conformance"
PACKAGES = HOME / "node_modules"
SUITE = PACKAGES / "@modelcontextprotocol" / "conformance"
NODE = PACKAGES / "node" / "bin" / "node"
REVISIONS = ("2025-11-25", "2026-07-28")

# The scenarios of extensions that we offer. The suite requires none of them; we do.
EXTENSIONS = {
    "2026-07-28": (
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
        "sep-2640-skills-enumeration",
        "sep-2640-skills-manifest",
        "sep-2640-skills-directory",
    )
}

START_SECS = 30.0
STOP_SECS = 15.0
TIME_LIMIT_SECS = 600.0
MAX_TRIES = 3


class SetUpError(Exception):
    """The suite cannot be run here; the text says what to do."""


class Verdict(NamedTuple):
    """What the suite says of one scenario: messages of its checks, by their ids."""

    failures: dict[str, str]
    warnings: dict[str, str]
    tries: int = 1


Verdicts = dict[str, Verdict]  # by scenario


class Requirements(NamedTuple):
    """What a revision demands of a server, what is run besides, and the scenarios of extensions that we offer."""

    scored: list[str]
    not_scored: list[str]
    extensions: list[str]

    @property
    def required(self) -> list[str]:
        return [*self.scored, *self.extensions]


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, leave)
    try:
        require_packages()
        require_known(options.scenario or ())
        if options.results.exists():
            shutil.rmtree(options.results)
        give_up_at = time.monotonic() + options.time_limit
        with tempfile.TemporaryDirectory(prefix="mcpgreen-conformance-") as scratch:
            project = copy_of_project(Path(scratch).resolve())
            with served(project, log=options.results / "server.log") as url:
                verdicts = {
                    revision: judge(url, revision, options.scenario, results=options.results, give_up_at=give_up_at)
                    for revision in options.revision
                }
    except SetUpError as error:
        print(error, file=sys.stderr)
        return 1
    demanded = {revision: requirements_of(revision) for revision in verdicts}
    print(table(verdicts, demanded))
    complaints = list(complaints_about(verdicts, demanded, is_whole=not options.scenario))
    for sentence in (*remarks_about(verdicts, demanded), *complaints):
        print(sentence)
    print(f"Every check: {shown(options.results)}")
    return 1 if complaints else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python scripts/conformance.py", description=__doc__)
    parser.add_argument("--revision", action="append", choices=REVISIONS, help="only this one (default: both)")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--results", type=Path, default=CHECKOUT / "build" / "conformance", metavar="DIR")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_SECS, metavar="SECS")
    options = parser.parse_args(arguments)
    options.revision = options.revision or list(REVISIONS)
    options.results = options.results.resolve()
    return options


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """A signal ends this like any other exit: the server is stopped, the copy removed."""
    raise SystemExit(128 + number)


def require_packages() -> None:
    absent = [path for path in (SUITE / "dist" / "index.js", NODE) if not path.is_file()]
    if absent:
        raise SetUpError(f"{shown(absent[0])} is missing: run npm ci in {shown(HOME)}, or make conformance.")


def require_known(scenarios: Sequence[str]) -> None:
    known = {name for revision in REVISIONS for names in requirements_of(revision) for name in names}
    unknown = [name for name in scenarios if name not in known]
    if unknown:
        raise SetUpError(f"The suite has no scenario {unknown[0]} for servers; its names are in docs/conformance.md.")


def copy_of_project(scratch: Path) -> Path:
    """A project that its tools may change. Scripts that others may write to are refused, and a clone may have such."""
    project = scratch / "project"
    shutil.copytree(HOME / "project", project, ignore=shutil.ignore_patterns(".registry"))
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return project


@contextmanager
def served(project: Path, *, log: Path) -> Iterator[str]:
    """The URL of the server, for as long as it is needed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        server = subprocess.Popen(
            [sys.executable, "-m", "mcpgreen", "serve", "--http", "127.0.0.1:0", "--project-root", str(project)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment(),
        )
    try:
        yield announced_url(server, log)
    finally:
        stop(server)


def environment() -> dict[str, str]:
    """Nothing of the operator's settings, our Python for tools, and a key as replicas would share it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCPGREEN_", "MCPBASH_", "MCP_"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "PYTHONPATH": str(CHECKOUT),
        "MCPGREEN_STATE_KEY": secrets.token_hex(32),
    }


def announced_url(server: subprocess.Popen[bytes], log: Path) -> str:
    """What the server says when it is ready."""
    give_up_at = time.monotonic() + START_SECS
    while time.monotonic() < give_up_at and server.poll() is None:
        found = re.search(r"^mcpgreen: serving (http://\S+)$", log.read_text(encoding="utf-8"), re.MULTILINE)
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise SetUpError(f"The server does not start; see {shown(log)}.")


def stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def requirements_of(revision: str) -> Requirements:
    """The scenarios that the suite itself lists for servers of this revision, and those of extensions."""
    listed = yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8"))
    others = [row["scenario"] for row in listed["not_scored"] if row["leg"] == "server"]
    ours = [*EXTENSIONS.get(revision, ())]
    return Requirements(listed["server"], [name for name in others if name not in ours], ours)


def judge(url: str, revision: str, only: Sequence[str] | None, *, results: Path, give_up_at: float) -> Verdicts:
    """What the suite says of each scenario: of all that the revision demands, or of some."""
    directory = results / revision
    directory.mkdir(parents=True)
    demanded = requirements_of(revision)
    if only is None:
        wanted, runs = demanded.required, [["--requirements", revision]]  # which leaves out some extensions
    else:
        wanted = [name for name in only if name in (*demanded.required, *demanded.not_scored)]
        runs = [alone(name, revision) for name in wanted]
    print(f"{revision} ...", flush=True)
    for _ in range(MAX_TRIES):
        for what in runs:
            run_suite(url, what, directory=directory, give_up_at=give_up_at)
        verdicts = verdicts_in(directory)
        again = [name for name in wanted if name not in verdicts or verdicts[name].failures]
        runs = [alone(name, revision) for name in again]
    return verdicts


def alone(scenario: str, revision: str) -> list[str]:
    """How to run one scenario. Those of extensions belong to no revision, so they have to be forced."""
    return ["--scenario", scenario, "--spec-version", revision, "--force"]


def run_suite(url: str, what: Sequence[str], *, directory: Path, give_up_at: float) -> None:
    """Its exit status only repeats what the checks say."""
    command = [NODE, SUITE / "dist" / "index.js", "server", "--url", url, "--output-dir", directory]
    with (directory / "suite.log").open("ab") as log:
        left_secs = max(0.0, give_up_at - time.monotonic())
        try:
            subprocess.run([*map(str, command), *what], stdout=log, stderr=log, timeout=left_secs)
        except subprocess.TimeoutExpired:
            raise SetUpError(f"The time is up; see {shown(directory / 'suite.log')}.") from None


def verdicts_in(directory: Path) -> Verdicts:
    """The last of each scenario. The names of their directories end in the time."""
    verdicts: Verdicts = {}
    for path in sorted(directory.glob("server-*/checks.json")):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z", path.parent.name)
        assert named is not None, path
        before = verdicts.get(named[1])
        may_skip = not any(named[1] in names for names in EXTENSIONS.values())
        verdict = verdict_of(json.loads(path.read_text(encoding="utf-8")), may_skip=may_skip)
        verdicts[named[1]] = verdict._replace(tries=before.tries + 1 if before else 1)
    return verdicts


def verdict_of(checks: list[dict[str, Any]], *, may_skip: bool = True) -> Verdict:
    def with_status(status: str) -> dict[str, str]:
        return {check["id"]: check.get("errorMessage") or status for check in checks if check["status"] == status}

    failures = with_status("FAILURE") if may_skip else {**with_status("SKIPPED"), **with_status("FAILURE")}
    return Verdict(failures, with_status("WARNING"))


def table(verdicts: Mapping[str, Verdicts], demanded: Mapping[str, Requirements]) -> str:
    """One line for each scenario, required ones first, one column for each revision."""
    judged = {name for verdict_by_name in verdicts.values() for name in verdict_by_name}
    scored = distinct(name for revision in verdicts for name in demanded[revision].required)
    others = distinct(name for revision in verdicts for name in demanded[revision].not_scored)
    lines = [line("", list(verdicts))]
    for mark, names in (("", scored), (" *", others)):
        for name in names:
            if name in judged:
                cells = [word_for(verdict_by_name.get(name)) for verdict_by_name in verdicts.values()]
                lines.append(line(name + mark, cells))
    lines += ["", "* run, but not required"] if judged & set(others) else [""]
    for revision, verdict_by_name in verdicts.items():
        scored, extensions = demanded[revision].scored, demanded[revision].extensions
        counted = {"required scenarios": scored, "scenarios of extensions": extensions}
        for what, wanted in counted.items():
            judged_here = [name for name in wanted if name in verdict_by_name]
            passed = [name for name in judged_here if not verdict_by_name[name].failures]
            if judged_here:
                lines.append(f"{revision}: {len(passed)} of {len(judged_here)} {what} pass")
    return "\n".join(lines)


def line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<48}" + "".join(f"{cell:<18}" for cell in cells).rstrip()


def word_for(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    if verdict.failures:
        return "fails"
    if verdict.tries > 1:
        return f"passes (try {verdict.tries})"
    return f"passes ({len(verdict.warnings)} warned)" if verdict.warnings else "passes"


def distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


def complaints_about(
    verdicts: Mapping[str, Verdicts], demanded: Mapping[str, Requirements], *, is_whole: bool
) -> Iterator[str]:
    """What is not as it should be, in sentences: each is a failure."""
    for revision, verdict_by_name in verdicts.items():
        for name in demanded[revision].required:
            verdict = verdict_by_name.get(name)
            if verdict is None:
                if is_whole:
                    yield f"{revision} {name}: the suite says nothing about it"
                continue
            for check, message in verdict.failures.items():
                yield f"{revision} {name}: {check}: {message}"


def remarks_about(verdicts: Mapping[str, Verdicts], demanded: Mapping[str, Requirements]) -> Iterator[str]:
    """Which scenarios fail that are not required, and why."""
    for revision, verdict_by_name in verdicts.items():
        for name in demanded[revision].not_scored:
            verdict = verdict_by_name.get(name)
            if verdict is not None and verdict.failures:
                check, message = next(iter(verdict.failures.items()))
                yield f"{revision} {name} (not required): {check}: {message}"


def shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
