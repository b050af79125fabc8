"""The server's side of asking, without a server: a real control pipe, a real FIFO or file for each reply.

For SDKs and for scripts without one. What the client would say is up to the test.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.programs import completed
from tests.support.waiting import PATIENCE_SECS, eventually

Json = dict[str, Any]
Say = Callable[[Json], Any]  # from a line with questions to the replies; bytes are written as they are, None is silence

# The descriptor moves to 97 inside the child: a parent that dup2()s onto 97 could hit one of pytest's own files.
ON_97 = 'exec 97>&"$1"; eval "exec $1>&-"; shift; exec "$@"'
STREAM = "/dev/fd/97"


class Talk(NamedTuple):
    """How a script ended, and what it wrote to the control pipe."""

    exit_code: int
    stdout: str
    stderr: str
    lines: list[Json]

    @property
    def questions(self) -> list[Json]:
        return [line for line in self.lines if "ask" in line]

    @property
    def params(self) -> list[Json]:
        """What was reported besides questions."""
        return [line["params"] for line in self.lines if "params" in line]


def talk(command: Sequence[str], say: Say, *, env: Mapping[str, str], cwd: Path) -> Talk:
    """Run a script and answer what it asks."""
    replies = cwd / "replies"
    replies.mkdir(exist_ok=True)
    reader, writer = os.pipe()
    lines: list[Json] = []

    def listen() -> None:
        with open(reader, encoding="utf-8") as stream:
            for text in stream:
                lines.append(json.loads(text))
                if "ask" in lines[-1] and (said := say(lines[-1])) is not None:
                    reply(lines[-1]["reply"], said if isinstance(said, bytes) else json.dumps(said).encode() + b"\n")

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        ended = completed(
            ["bash", "-c", ON_97, "talk", str(writer), *command],
            env={
                "PATH": os.environ["PATH"],
                **env,
                "MCP_PROGRESS_STREAM": STREAM,
                "MCP_LOG_STREAM": STREAM,
                "MCP_ASK_REPLY": str(replies / "call"),
            },
            cwd=cwd,
            pass_fds=(writer,),
            timeout=4 * PATIENCE_SECS,
        )
    finally:
        os.close(writer)
        listener.join(PATIENCE_SECS)
    assert list(replies.iterdir()) == [], "the script left its FIFO or file"
    return Talk(ended.returncode, ended.stdout, ended.stderr, lines)


def reply(path: str, text: bytes) -> None:
    """Into the FIFO if the script made one, else into a file that appears whole."""
    if not os.path.exists(path):
        Path(f"{path}.new").write_bytes(text)
        os.rename(f"{path}.new", path)
        return
    mode = os.stat(path).st_mode
    assert stat.S_ISFIFO(mode) and stat.S_IMODE(mode) == 0o600
    with open(eventually(lambda: _opened(path)), "wb") as fifo:
        os.set_blocking(fifo.fileno(), True)
        fifo.write(text)


def _opened(path: str) -> int | None:
    """The writing end, as soon as there is a reader. Never a wait that a script without one could make endless."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO, error
        return None


def answered(**results: Any) -> Say:
    """Each question by its key, whatever it asks."""
    return lambda line: {key: {"status": "answered", "result": results[key]} for key in line["ask"]}


def unanswered(status: str, message: str = "") -> Say:
    """The same status for every question."""
    return lambda line: {key: {"status": status, "message": message} for key in line["ask"]}
