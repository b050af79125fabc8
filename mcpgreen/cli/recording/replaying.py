"""`mcpgreen replay`: send what a client sent in a recording to the project as it is now, and show what differs.

Frames of the client are sent in their order, each after the server's frames that came before it. `--serve` plays the
other side (`playing`).
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import Connection, NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import GREEN, RED, painted, print_json, put, say
from mcpgreen.cli.recording.files import Recorded, Recording, translated
from mcpgreen.cli.recording.record import VARIABLE
from mcpgreen.logs.secrets import Secrets
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_SHOWN = 20  # differences of one answer
POLL_SECS = 0.1
POLLED = "tasks/get"
PROGRESS = "notifications/progress"
REFUSAL: Json = {"error": {"code": -1, "message": "The recording has no answer to this question."}}


class Difference(NamedTuple):
    line: int  # of the recording
    what: str
    details: list[str]


def run(options: Options) -> int:
    """Return 1 if something differs."""
    recording = Recording(options["FILE"])
    if options["--serve"]:
        from mcpgreen.cli.recording.playing import play

        return play(recording)
    project, _, _ = open_named(options)
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    words = (*program_words(os.environ), "serve", "--project-root", project.root)
    replay = Replay(recording, Connection(words, env=env, cwd=project.root), project.root)
    try:
        found = list(replay.differences())
    finally:
        replay.connection.close()
    hide = Secrets().text  # what a recording hides must not be in a report either
    found = [each._replace(details=[hide(detail) for detail in each.details]) for each in found]
    if options["--json"]:
        print_json({"answers": replay.answers, "differences": [each._asdict() for each in found]})
        return 1 if found else 0
    for each in found:
        put(painted("differs", RED, sys.stdout), sys.stdout)
        say(f" {each.what} ({options['FILE']}:{each.line})\n")
        for line in "\n".join(each.details).splitlines():
            say(f"    {line}\n")
    count = f"{replay.answers} answer{'s' * (replay.answers != 1)}"
    text = f"{count}, {len(found)} difference{'s' * (len(found) != 1)}"
    put(painted(text, RED if found else GREEN, sys.stdout) + "\n", sys.stdout)
    return 1 if found else 0


class Replay:
    def __init__(self, recording: Recording, connection: Connection, root: str) -> None:
        self.connection = connection
        self.answers = 0  # that were compared
        self._recording = recording
        self._root = root
        self._frames = _without_polls(recording.frames)
        self._requests: dict[object, Json] = {}  # of the client, by id, as they were sent
        self._words: dict[str, str] = {}  # recorded values that the server knows by others now
        self._ids: dict[object, object] = {}  # of the server's questions
        self._responses: dict[object, Json] = {}
        self._questions: list[Json] = []
        self._recorded_notes: list[Json] = []
        self._notes: list[Json] = []

    def differences(self) -> Iterator[Difference]:
        """Play the session, and yield what differs."""
        for index, recorded in enumerate(self._frames):
            try:
                yield from self._step(index, recorded)
            except NoAnswer as error:
                text = f"the server does not answer: {error}"
                yield Difference(recorded.number, self._title(recorded.frame), [text])
                return
        details = self._differing_notes()
        if details:
            yield Difference(1, "notifications", details)

    def _step(self, index: int, recorded: Recorded) -> Iterator[Difference]:
        frame = recorded.frame
        if frame is None:
            if recorded.sender == "client":
                yield Difference(recorded.number, "a frame", ["it was not recorded as a whole, so it is not sent"])
        elif recorded.sender == "client":
            self._send(frame)
        elif "method" not in frame:
            if frame.get("id") not in self._requests:
                return  # it answers what could not be recorded
            self.answers += 1
            live = self._response_to(index, frame)
            yield from self._compared(recorded, frame, live, f"no answer within {self._recording.secs:g} s")
            del self._requests[frame["id"]]
        elif "id" in frame:
            question = self._question(frame)
            if question is not None:
                self._ids[frame["id"]] = question["id"]
            yield from self._compared(
                recorded, _bare(frame), question and _bare(question), "the server does not ask this"
            )
        else:
            self._recorded_notes.append(frame)

    def _compared(self, recorded: Recorded, wanted: Json, live: Json | None, missing: str) -> Iterator[Difference]:
        if live is None:
            details = [missing]
        else:
            self._words.update(self._recording.links(wanted, live))
            details = list(self._recording.differences(wanted, live, self._root))
        if details:
            more = [f"... and {len(details) - MAX_SHOWN} more"] if len(details) > MAX_SHOWN else []
            yield Difference(recorded.number, self._title(recorded.frame), details[:MAX_SHOWN] + more)

    def _title(self, frame: Json | None) -> str:
        asked = frame if frame is None or "method" in frame else self._requests.get(frame.get("id"), frame)
        params = (asked or {}).get("params", {})
        name = params.get("name") or params.get("uri") or params.get("message") or ""
        return f"{(asked or {}).get('method', 'a frame')} {name}".strip()

    def _send(self, frame: Json) -> None:
        if "method" in frame:
            frame = translated(frame, self._words)
            if "id" in frame:
                self._requests[frame["id"]] = frame
        elif frame.get("id") in self._ids:
            frame = {**frame, "id": self._ids.pop(frame["id"])}
        else:
            return  # the server has not asked
        self.connection.send(frame)

    def _response_to(self, index: int, frame: Json) -> Json | None:
        """Wait for the answer to a request; refuse questions that the recording does not have."""
        request_id = frame["id"]
        is_poll = self._requests[request_id]["method"] == POLLED
        until = time.monotonic() + self._recording.secs
        later = [each.frame["method"] for each in self._frames[index:] if _is_question(each) and each.frame]
        while True:
            if request_id in self._responses:
                response = self._responses.pop(request_id)
                if not is_poll or _status(response) in (None, _status(frame)) or time.monotonic() > until:
                    return response
                if _status(response) != "working":
                    return response
                time.sleep(POLL_SECS)
                self.connection.send(self._requests[request_id])
            for question in [each for each in self._questions if each["method"] not in later]:
                self._questions.remove(question)
                self.connection.send({"id": question["id"], **REFUSAL})
            if not self._receive(until):
                return None

    def _question(self, frame: Json) -> Json | None:
        until = time.monotonic() + self._recording.secs
        while True:
            same = [each for each in self._questions if each["method"] == frame["method"]]
            if same:
                closest = min(same, key=lambda each: each.get("params") != frame.get("params"))
                self._questions.remove(closest)
                return closest
            # When all requests have been answered, none of them will ask.
            if not self._requests.keys() - self._responses.keys() or not self._receive(until):
                return None

    def _receive(self, until: float) -> bool:
        """Take the next frame of the server; return False if there is none in time."""
        received = self.connection.receive(until)
        for frame in received if isinstance(received, list) else [received]:
            if frame is None:
                return False
            if "method" not in frame:
                self._responses[frame.get("id")] = frame
            elif "id" in frame:
                self._questions.append(frame)
            else:
                self._notes.append(frame)
        return True

    def _differing_notes(self) -> list[str]:
        """Say which notifications are missing, and which are new. Of progress, only whether there is any."""
        counts = []
        for notes, root in ((self._recorded_notes, self._recording.root), (self._notes, self._root)):
            shown: Counter[str] = Counter()
            for note in notes:
                method, params = note["method"], note.get("params", {})
                if method not in self._recording.rules["notifications"]:
                    continue
                if method == PROGRESS:
                    shown[f"{method} for {params.get('progressToken')}"] = 1
                else:
                    params = self._recording.plain(params, root)
                    shown[f"{method} {jsontext.dumps(params).decode('ascii')}"] += 1
            counts.append(shown)
        missing, new = counts[0] - counts[1], counts[1] - counts[0]
        details = [f"missing: {text}" for text in missing.elements()] + [f"new: {text}" for text in new.elements()]
        return details[:MAX_SHOWN]


def _bare(frame: Json) -> Json:
    """Return a question without its id, which each session chooses."""
    return {name: value for name, value in frame.items() if name != "id"}


def _is_question(recorded: Recorded) -> bool:
    return recorded.sender == "server" and recorded.frame is not None and {"id", "method"} <= recorded.frame.keys()


def _status(response: Json) -> str | None:
    status = response.get("result", {}).get("status")
    return status if isinstance(status, str) else None


def _without_polls(frames: list[Recorded]) -> list[Recorded]:
    """Leave out looks at a task that was still working: how many there are depends on the time."""
    idle: set[object] = set()
    polls: dict[object, Recorded] = {}
    for each in frames:
        frame = each.frame or {}
        if each.sender == "client" and frame.get("method") == POLLED:
            polls[frame.get("id")] = each
        elif each.sender == "server" and "method" not in frame and frame.get("id") in polls:
            poll = polls.pop(frame.get("id"))
            if _status(frame) == "working":
                idle |= {id(poll), id(each)}
    return [each for each in frames if id(each) not in idle]
