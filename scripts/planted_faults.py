"""Plant faults in copies of this checkout, one at a time, and see whether the tests catch them.

    python scripts/planted_faults.py [--list] [--jobs N] [--all-tests] [NAME...]

The faults are in tests/planted_faults.py, each with the test that should fail because of it. First all these tests have
to pass without a fault; then each fault is planted in a copy, its test is run to the first failure, and the copy is
mended. A test that hangs has caught its fault too. The exit status is 1 if a fault was not caught, or no longer applies
because the code or its test has changed: then point it at what has taken their place.

Rule: only a failed test counts. What pytest itself stumbles over, a test that is not there for one, catches nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import queue
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.planted_faults import FAULTS, Fault, why_stale  # noqa: E402

NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", "*.egg-info", "build", "dist", "node_modules", ".registry"
)
PASSED, FAILED = 0, 1  # exit statuses of pytest; all others are its own troubles
HANGS = "hangs"
NAMED_SECS = 120.0  # what the test of one fault may take; most need a few
ALL_SECS = 1800.0
LAST_WORD_SECS = 10.0
PATIENCE_SECS = 5.0  # for conditions that a fault may keep from ever being true


class Copy:
    """A copy of the checkout, with a Python that imports from it and from nowhere else what is ours."""

    def __init__(self, place: Path) -> None:
        self._root = place / "checkout"
        shutil.copytree(REPOSITORY, self._root, ignore=NOT_COPIED, symlinks=True)
        environment = place / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
        self._python = environment / "bin" / "python"
        ours = next(environment.glob("lib/python3*/site-packages"))
        # What is named here is not searched for further .pth files, so that of an editable install has no effect.
        (ours / "copy.pth").write_text(f"{self._root}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")

    def outcome(self, tests: Sequence[str], *, secs: float, patience_secs: float = 0) -> tuple[int | str, str]:
        """The exit status of pytest, or that it hangs; and what it said last."""
        options = ["-x", "-q", "-p", "no:cacheprovider"]
        if tests:
            options += ["-o", "addopts=-Werror", *tests]  # without what a whole run needs, such as more processes
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [self._python, "-m", "pytest", *options],
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "TEST_PATIENCE_SECS": f"{patience_secs}"} if patience_secs else None,
            )
            try:
                status: int | str = process.wait(secs)
            except subprocess.TimeoutExpired:
                _interrupt(process)
                status = HANGS
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
        return status, "\n".join(lines[-12:])

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        path = self._root / fault.file
        sound = path.read_text(encoding="utf-8")
        _rewrite(path, sound.replace(fault.old, fault.new))
        try:
            yield
        finally:
            _rewrite(path, sound)


def _rewrite(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".py":
        # Python would take what is compiled for current if size and second are the same.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C would: pytest then stops the servers that it has started."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(LAST_WORD_SECS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def judged(fault: Fault, copies: queue.Queue[Copy], *, all_tests: bool) -> str:
    """What is wrong; nothing if the fault is caught."""
    copy = copies.get()
    began_at = time.monotonic()
    tests, secs = ((), ALL_SECS) if all_tests else ((fault.test,), NAMED_SECS)
    with copy.with_fault(fault):
        outcome, said = copy.outcome(tests, secs=secs, patience_secs=PATIENCE_SECS)
    copies.put(copy)
    word = {FAILED: "caught", HANGS: "caught, as the tests hang"}.get(outcome, "NOT CAUGHT")
    tell(f"{word}: {fault.name} ({time.monotonic() - began_at:.1f} s)")
    if outcome == PASSED:
        return f"{fault.name} is not caught by {'any test' if all_tests else fault.test}"
    return "" if outcome in (FAILED, HANGS) else f"{fault.name}: its test cannot be run:\n{said}"


def judge(faults: Sequence[Fault], *, jobs: int, all_tests: bool) -> list[str]:
    """What is wrong, a paragraph each."""
    with tempfile.TemporaryDirectory(prefix="planted-faults-") as place:
        os.chmod(place, 0o755)  # some tests are run as another user
        copies: queue.Queue[Copy] = queue.Queue()
        for number in range(min(jobs, len(faults))):
            copies.put(Copy(Path(place) / str(number)))
        problem = problem_without_faults(copies, faults, all_tests=all_tests)
        if problem:
            return [problem]
        with ThreadPoolExecutor(copies.qsize()) as pool:
            try:
                problems = list(pool.map(lambda fault: judged(fault, copies, all_tests=all_tests), faults))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # who interrupts us does not want to wait for all of them
                raise
    return list(filter(None, problems))


def problem_without_faults(copies: queue.Queue[Copy], faults: Iterable[Fault], *, all_tests: bool) -> str:
    """Tests that fail anyway would catch everything."""
    tests = [] if all_tests else list(dict.fromkeys(fault.test for fault in faults))
    copy = copies.get()
    began_at = time.monotonic()
    outcome, said = copy.outcome(tests, secs=ALL_SECS)
    copies.put(copy)
    if outcome != PASSED:
        return f"the tests do not pass without any fault:\n{said}"
    tell(f"without any fault: {said.splitlines()[-1]} ({time.monotonic() - began_at:.1f} s)")
    return ""


def tell(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Plant faults in copies of this checkout; the tests have to fail.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="plant only these faults")
    parser.add_argument("--list", action="store_true", help="print the names and files of the faults, and plant none")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at a time (default: 2)")
    parser.add_argument("--all-tests", action="store_true", help="run all tests, not only the one named with the fault")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - {fault.name for fault in FAULTS})
    if unknown or options.jobs < 1:
        parser.error(f"there is no fault called {', '.join(unknown)}" if unknown else "--jobs must be 1 or more")
    wanted = [fault for fault in FAULTS if not options.names or fault.name in options.names]
    if options.list:
        for fault in wanted:
            tell(f"{fault.name}\t{fault.file}")
        return 0
    stale = {fault: why_stale(fault, REPOSITORY) for fault in wanted}
    problems = [f"{fault.name} no longer applies: {reason}" for fault, reason in stale.items() if reason]
    usable = [fault for fault, reason in stale.items() if not reason]
    if usable:
        problems += judge(usable, jobs=options.jobs, all_tests=options.all_tests)
    for problem in problems:
        tell(f"\n{problem}")
    tell(f"\n{len(wanted)} faults, {len(problems)} problems" if problems else f"\nall {len(wanted)} faults were caught")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
