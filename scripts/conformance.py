"""`make conformance`: let the official conformance suite judge the server, and show what it says.

The suite speaks HTTP and the server stdio, so a bridge stands between them: one server process for each session of a
client that shakes hands, and one for each request of the stateless era. The fixtures are `tests/conformance/project`;
it is served from a copy, because some of its tools change it.

Rule: the suite judges, this only counts. A failure that is not ours stands in `EXPECTED_FAILURES` with its reason; when
it does not happen any more, that is a failure, too, and the row has to go. The suite gives some answers half a second,
with the start of a server in it: on a busy machine that is too short, so what fails is tried again, and the table says
how often.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
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
BRIDGE = PACKAGES / "supergateway" / "dist" / "index.js"
NODE = PACKAGES / "node" / "bin" / "node"
REVISIONS = ("2025-11-25", "2026-07-28")

# Scenario and check: why it fails although the server is right.
EXPECTED_FAILURES = {
    ("dns-rebinding-protection", "localhost-host-rebinding-rejected"): "the bridge accepts every Host header",
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
    """What a revision demands of a server, and what is run besides."""

    scored: list[str]
    not_scored: list[str]


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
            with bridge_to(project, log=options.results / "bridge.log") as url:
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
    for line in complaints:
        print(line)
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
    """A signal ends this like any other exit: the bridge is stopped, the copy removed."""
    raise SystemExit(128 + number)


def require_packages() -> None:
    absent = [path for path in (SUITE / "dist" / "index.js", BRIDGE, NODE) if not path.is_file()]
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
def bridge_to(project: Path, *, log: Path) -> Iterator[str]:
    """The URL of the server, for as long as it is needed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    port = free_port()
    server = shlex.join([sys.executable, "-m", "mcpgreen", "serve", "--project-root", str(project)])
    options = ["--outputTransport", "streamableHttp", "--stateful", "--healthEndpoint", "/healthz"]
    with log.open("wb") as sink:
        bridge = subprocess.Popen(
            [str(NODE), str(BRIDGE), "--stdio", f"exec {server}", "--port", str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment(),
            start_new_session=True,
        )
    try:
        wait_for_health(bridge, f"http://127.0.0.1:{port}/healthz", log)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        stop(bridge)


def environment() -> dict[str, str]:
    """Nothing of the operator's settings, our Python for tools, and one key for all servers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCPGREEN_", "MCPBASH_", "MCP_"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "PYTHONPATH": str(CHECKOUT),
        "MCPGREEN_STATE_KEY": secrets.token_hex(32),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_health(bridge: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up_at = time.monotonic() + START_SECS
    while time.monotonic() < give_up_at and bridge.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=START_SECS):
                return
        except OSError:
            time.sleep(0.05)
    raise SetUpError(f"The bridge does not answer; see {shown(log)}.")


def stop(bridge: subprocess.Popen[bytes]) -> None:
    """It ends its servers when it is asked to; they also end by themselves when nobody is left to talk to."""
    bridge.terminate()
    try:
        bridge.wait(STOP_SECS)
    except subprocess.TimeoutExpired:
        os.killpg(bridge.pid, signal.SIGKILL)
        bridge.wait()


def requirements_of(revision: str) -> Requirements:
    """The scenarios that the suite itself lists for servers of this revision."""
    listed = yaml.safe_load((SUITE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8"))
    others = [row["scenario"] for row in listed["not_scored"] if row["leg"] == "server"]
    return Requirements(listed["server"], others)


def judge(url: str, revision: str, only: Sequence[str] | None, *, results: Path, give_up_at: float) -> Verdicts:
    """What the suite says of each scenario: of all that the revision demands, or of some."""
    directory = results / revision
    directory.mkdir(parents=True)
    demanded = requirements_of(revision)
    if only is None:
        wanted, runs = demanded.scored, [["--requirements", revision]]
    else:
        wanted = [name for name in only if name in (*demanded.scored, *demanded.not_scored)]
        runs = [["--scenario", name, "--spec-version", revision] for name in wanted]
    print(f"{revision} ...", flush=True)
    for _ in range(MAX_TRIES):
        for what in runs:
            run_suite(url, what, directory=directory, give_up_at=give_up_at)
        verdicts = verdicts_in(directory)
        failed = [name for name in wanted if name in verdicts and unexpected_failures(name, verdicts[name])]
        runs = [["--scenario", name, "--spec-version", revision] for name in failed]
    return verdicts


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
        verdict = verdict_of(json.loads(path.read_text(encoding="utf-8")))
        verdicts[named[1]] = verdict._replace(tries=before.tries + 1 if before else 1)
    return verdicts


def unexpected_failures(scenario: str, verdict: Verdict) -> dict[str, str]:
    """Messages by check."""
    return {check: text for check, text in verdict.failures.items() if (scenario, check) not in EXPECTED_FAILURES}


def verdict_of(checks: list[dict[str, Any]]) -> Verdict:
    def with_status(status: str) -> dict[str, str]:
        return {check["id"]: check.get("errorMessage") or status for check in checks if check["status"] == status}

    return Verdict(with_status("FAILURE"), with_status("WARNING"))


def table(verdicts: Mapping[str, Verdicts], demanded: Mapping[str, Requirements]) -> str:
    """One line for each scenario, required ones first, one column for each revision."""
    judged = {name for verdict_by_name in verdicts.values() for name in verdict_by_name}
    scored = distinct(name for revision in verdicts for name in demanded[revision].scored)
    others = distinct(name for revision in verdicts for name in demanded[revision].not_scored)
    lines = [line("", list(verdicts))]
    for mark, names in (("", scored), (" *", others)):
        for name in names:
            if name in judged:
                cells = [word_for(verdict_by_name.get(name), name) for verdict_by_name in verdicts.values()]
                lines.append(line(name + mark, cells))
    lines += ["", "* run, but not required"] if judged & set(others) else [""]
    for revision, verdict_by_name in verdicts.items():
        required = [name for name in demanded[revision].scored if name in verdict_by_name]
        passed = [name for name in required if not verdict_by_name[name].failures]
        if required:
            lines.append(f"{revision}: {len(passed)} of {len(required)} required scenarios pass")
    return "\n".join(lines)


def line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<48}" + "".join(f"{cell:<18}" for cell in cells).rstrip()


def word_for(verdict: Verdict | None, scenario: str) -> str:
    if verdict is None:
        return "-"
    if verdict.failures:
        return "fails" if unexpected_failures(scenario, verdict) else "fails (expected)"
    if verdict.tries > 1:
        return f"passes (try {verdict.tries})"
    return f"passes ({len(verdict.warnings)} warned)" if verdict.warnings else "passes"


def distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


def complaints_about(
    verdicts: Mapping[str, Verdicts], demanded: Mapping[str, Requirements], *, is_whole: bool
) -> Iterator[str]:
    """What is not as it should be, in sentences. Expected failures are told, and are no complaint."""
    for revision, verdict_by_name in verdicts.items():
        for name in demanded[revision].scored:
            verdict = verdict_by_name.get(name)
            if verdict is None:
                if is_whole:
                    yield f"{revision} {name}: the suite says nothing about it"
                continue
            for check, message in unexpected_failures(name, verdict).items():
                yield f"{revision} {name}: {check}: {message}"
            for (scenario, check), reason in EXPECTED_FAILURES.items():
                if scenario == name and check not in verdict.failures:
                    yield f"{revision} {name}: {check} passes now; take it off EXPECTED_FAILURES ({reason})"


def shown(path: Path) -> str:
    return str(path.relative_to(CHECKOUT)) if path.is_relative_to(CHECKOUT) else str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
