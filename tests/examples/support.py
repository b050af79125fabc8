"""Examples as the tests have them: served by a forked server, which costs little, from a copy of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from examples.harness.ladder import Example, Sent
from examples.harness.playing import Play, scrubbed
from examples.harness.sending import Sending
from examples.harness.wire import Wire
from examples.harness.workplace import copy_of
from tests.support.forking import Forked
from tests.support.wire import END_SECS, clean_environment, nursery


@contextlib.contextmanager
def server_of(project: Path) -> Iterator[Forked]:
    """What the server says on stderr is dropped: it is for whoever sits at the terminal."""
    server = nursery().fork(["serve", "--project-root", str(project)], clean_environment())
    try:
        yield server
    finally:
        with contextlib.suppress(BrokenPipeError):
            server.stdin.close()
        try:
            server.wait(
                END_SECS
            )  # usually it has gone by now: a signal could come between its end and our hearing of it
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
        server.stderr.close()


def played(example: Example) -> str:
    """The conversation as it takes place, as the page has it."""
    with copy_of(example) as project, server_of(project) as server:
        return "".join(f"{scrubbed(line, project)}\n" for line in Play(example.steps(), Wire(server), project).lines())


def printed(example: Example, sent: Sent) -> str:
    """What `examples/send` prints, as the page has it."""
    with copy_of(example) as project, server_of(project) as server:
        answers = Sending(sent.lines, is_raw=sent.is_raw).answers(Wire(server))
        return "".join(f"{scrubbed(answer, project)}\n" for answer in answers)


def found_by(command: str, project: Path) -> str:
    """What `validate` or `lint` prints when warnings count, with its status in front."""
    arguments = [command, "--strict", "--project-root", str(project)]
    done = nursery().run(arguments, clean_environment(), timeout=120)
    return f"{done.returncode}: {done.stdout}{done.stderr}"


def our_python() -> dict[str, str]:
    """For the launcher: the environment of the tests, whatever the checkout has."""
    return {"MCPGREEN_PYTHON": sys.executable}
