"""`mcpgreen record`, and `mcpgreen replay`: send what a client sent in a recording to the project as it is now.

Messages of the client are sent in their order, each after the answers that came before it. Questions of the server get
the recorded answers. `--serve` plays the other side (`playing`).
"""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import Connection, NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import GREEN, RED, painted, print_json, put, say
from mcpgreen.cli.recording.files import Recorded, Recording
from mcpgreen.cli.recording.playing import TOKEN, play
from mcpgreen.errors import UsageError
from mcpgreen.logs.secrets import Secrets, is_secret_name
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

VARIABLE = "MCPGREEN_RECORD"
ANSWER_SECS = 30.0
MAX_SHOWN = 20  # differences of one answer
POLL_SECS = 0.1
POLLED = "tasks/get"
LOG, PROGRESS = "notifications/message", "notifications/progress"
REFUSAL: Json = {"error": {"code": -1, "message": "The recording has no answer to this question."}}


class Difference(NamedTuple):
    line: int  # of the recording
    what: str
    details: list[str]


def record(options: Options) -> int:
    """Become a server that records its session. The command can stand in a client's configuration."""
    words = options["WORD"]
    if words[0] != "serve" or any(word.startswith("--http") for word in words):
        raise UsageError("only sessions over stdio are recorded: write -- serve, without --http.")
    program = program_words(os.environ)
    os.environ[VARIABLE] = os.path.abspath(os.path.expanduser(options["FILE"]))
    os.execv(program[0], [*program, *words])


def replay(options: Options) -> int:
    """Return 1 if something differs."""
    if options["--serve"]:
        return play(Recording(options["FILE"]))
    project, _, _ = open_named(options)
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    words = (*program_words(os.environ), "serve", "--project-root", project.root)
    session = Replay(Recording(options["FILE"], project.root), Connection(words, env=env, cwd=project.root))
    try:
        session.play()
    finally:
        session.connection.close()
    # What a recording hides must not be in a report either.
    hide = Secrets(values=[value for name, value in env.items() if is_secret_name(name)]).text
    found = [each._replace(details=[hide(detail) for detail in each.details[:MAX_SHOWN]]) for each in session.found]
    if options["--json"]:
        print_json({"answers": session.answers, "differences": [each._asdict() for each in found]})
        return 1 if found else 0
    for each in found:
        put(painted("differs", RED, sys.stdout), sys.stdout)
        details = "\n".join(each.details).replace("\n", "\n    ")
        say(f" {each.what} ({options['FILE']}:{each.line})\n    {details}\n")
    count = f"{session.answers} answer{'s' * (session.answers != 1)}"
    text = f"{count}, {len(found)} difference{'s' * (len(found) != 1)}"
    put(painted(text, RED if found else GREEN, sys.stdout) + "\n", sys.stdout)
    return 1 if found else 0


class Replay:
    def __init__(self, recording: Recording, connection: Connection) -> None:
        self.connection = connection
        self.found: list[Difference] = []
        self.answers = 0  # that were compared
        self._recording = recording
        self._requests: dict[object, Json] = {}  # as they were sent, by id
        self._open: set[object] = set()  # the ids of those that the server has not answered
        self._answers: dict[object, Json] = {}  # that are not compared yet
        said = [each for each in recording.messages if each.sender == "server"]
        self._questions = [each for each in said if {"id", "method"} <= each.message.keys()]  # that have not come yet
        self._replies = {
            each.message["id"]: each.message
            for each in recording.messages
            if each.sender == "client" and "id" in each.message and "method" not in each.message
        }
        self._notes: dict[str, set[str]] = {"missing": set(), "new": set()}

    def play(self) -> None:
        """Play the session, and put what differs into `found`."""
        for recorded in self._recording.messages:
            try:
                if recorded.sender == "client":
                    self._send(recorded)
                else:
                    self._compare(recorded)
            except NoAnswer as error:
                self._report(recorded, [f"the server does not answer: {error}{self.connection.last_words()}"])
                return
        then, now = self._notes["missing"], self._notes["new"]
        details = [f"missing: {each}" for each in sorted(then - now)] + [f"new: {each}" for each in sorted(now - then)]
        if details:
            self.found.append(Difference(1, "notifications", details))

    def _send(self, recorded: Recorded) -> None:
        words = self._recording.words
        message = jsontext.rewritten(
            recorded.message, lambda _, __, value: words.get(value, value) if isinstance(value, str) else value
        )
        if not message:
            self._report(recorded, ["it was not recorded, so it is not sent"])
        elif "method" in message:  # an answer is sent when the server asks
            if "id" in message:
                self._requests[message["id"]] = message
            if message["method"] != POLLED:
                self._open.update({message["id"]} if "id" in message else ())
                self.connection.send(message)

    def _compare(self, recorded: Recorded) -> None:
        """Wait for the answer to the same request, and compare it. How often a client looks at a task that works does
        not matter."""
        message, until = recorded.message, time.monotonic() + ANSWER_SECS
        request = self._requests.get(message.get("id"))
        if "method" in message and "id" in message:
            while recorded in self._questions and self._open and self._hear(until):
                pass
            if recorded in self._questions:
                self._questions.remove(recorded)
                self._report(recorded, ["the server does not ask this"])
        elif "method" in message:
            self._note("missing", message)
        elif request is not None and not (request["method"] == POLLED and _is_working(message)):
            self.answers += 1
            live = self._answer_to(request, until)
            missing = [f"no answer within {ANSWER_SECS:g} s"]
            self._report(recorded, missing if live is None else self._recording.differences(message, live))

    def _answer_to(self, request: Json, until: float) -> Json | None:
        is_poll = request["method"] == POLLED
        while True:
            if is_poll:
                self.connection.send(request)
            while request["id"] not in self._answers:
                if not self._hear(until):
                    return None
            answer = self._answers.pop(request["id"])
            if not is_poll or not _is_working(answer) or time.monotonic() > until:
                return answer
            time.sleep(POLL_SECS)

    def _hear(self, until: float) -> bool:
        """Take the next message of the server; return False if there is none in time."""
        message = self.connection.receive(until)
        if message is None:
            return False
        if "method" not in message:
            self._answers[message.get("id")] = message
            self._open.discard(message.get("id"))
        elif "id" in message:
            self._answer(message)
        else:
            self._note("new", message)
        return True

    def _answer(self, question: Json) -> None:
        """Answer a question as the client answered the recorded one that is most like it."""
        same = [each for each in self._questions if each.message["method"] == question["method"]]
        reply = REFUSAL
        if same:
            recorded = min(same, key=lambda each: each.message.get("params") != question.get("params"))
            self._questions.remove(recorded)
            reply = self._replies.get(recorded.message["id"], REFUSAL)
            then, now = ({**each, "id": None} for each in (recorded.message, question))  # ids are those of a session
            self._report(recorded, self._recording.differences(then, now))
        else:
            self._notes["new"].add(self._recording.shown({**question, "id": None}))
        self.connection.send({**reply, "id": question["id"]})

    def _note(self, kind: str, message: Json) -> None:
        """Keep a notification. Of progress, only whether there is any."""
        method, params = message["method"], message.get("params", {})
        if method in (LOG, PROGRESS):
            shown = f"for {params.get(TOKEN)}" if method == PROGRESS else self._recording.shown(params)
            self._notes[kind].add(f"{method} {shown}")

    def _report(self, recorded: Recorded, details: list[str]) -> None:
        message = recorded.message
        asked = message if "method" in message else self._requests.get(message.get("id"), {})
        params = asked.get("params", {})
        name = params.get("name") or params.get("uri") or params.get("message") or ""
        if details:
            self.found.append(Difference(recorded.line, f"{asked.get('method', 'a message')} {name}".strip(), details))


def _is_working(answer: Json) -> bool:
    return bool(answer.get("result", {}).get("status") == "working")
