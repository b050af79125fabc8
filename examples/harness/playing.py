"""Play the conversation of an example with its server, and show it as its README does.

What differs from run to run stands in angle brackets on the page: `<project>` is the folder that is served, and any
other name the text that the server sent last under it, such as `<nextCursor>`. In what is sent it is filled in, and
`scrubbed` makes it of what came.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from examples.harness.ladder import Step
from examples.harness.wire import PATIENCE_SECS, Silence, Wire, values_named
from examples.harness.workplace import environment

REMEMBERED = ("nextCursor", "requestState", "taskId")
SCRUBBED = {"nextCursor": "nextCursor", "cursor": "nextCursor", "requestState": "requestState"}
SCRUBBED |= {name: name for name in ("taskId", "createdAt", "lastUpdatedAt")}
AGE = re.compile(r'(?<="ttlMs":36)\d{5}')  # is added to the hour for which a task is kept


class Play:
    def __init__(self, steps: list[Step], wire: Wire, project: Path) -> None:
        self._steps, self._wire, self._project = steps, wire, project
        self._known = {"project": str(project)}

    def lines(self) -> Iterator[str]:
        """The conversation as it happens. Raises Silence when the server does not answer as often as the page says."""
        if not any(step.kind == "-->" and '"initialize"' in step.text for step in self._steps):
            self._wire.handshake()
        for step in self._steps:
            if step.kind == "-->":
                line = self._filled_in(step.text)
                yield f"--> {line}"
                self._wire.send(line)
            elif step.kind == "<--":
                yield self._received()
            elif step.kind == "$":
                yield f"$ {step.text}"
                yield from self._typed(step.text)
        self._wire.close()
        while (unexpected := self._wire.next_line()) is not None:
            yield f"<-- {unexpected}"

    def _received(self) -> str:
        line = self._wire.next_line()
        if line is None:
            raise Silence("the server has ended")
        message = json.loads(line)
        for name in REMEMBERED:
            for value in values_named(name, message):
                self._known[name] = value
        return f"<-- {line}"

    def _filled_in(self, text: str) -> str:
        return re.sub(r"<(\w+)>", lambda found: self._known.get(found[1], found[0]), text)

    def _typed(self, text: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=self._project,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=4 * PATIENCE_SECS,
            check=False,
        )
        return done.stdout.splitlines()


def scrubbed(line: str, project: Path) -> str:
    """Without what differs from run to run."""
    line = AGE.sub("00000", line.replace(str(project), "<project>"))
    for name, meaning in SCRUBBED.items():
        line = re.sub(rf'("{name}":)"[^"]*"', rf'\1"<{meaning}>"', line)
    return line
