"""`mcpgreen record`, and `mcpgreen replay`: send what a client sent in a recording to the project as it is now.

Messages of the client are sent in their order, each after the answers that came before it. Questions of the server get
the recorded answers. `--serve` plays the other side (`playing`).
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.commands import Options
from mcpgreen.cli.connection import Connection, NoAnswer
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import GREEN, RED, painted, put, say
from mcpgreen.cli.recording.files import Recording, is_request
from mcpgreen.cli.recording.playing import TOKEN, play
from mcpgreen.errors import UsageError
from mcpgreen.logs.secrets import Secrets, is_secret_name
from mcpgreen.text.json_types import Json

VARIABLE = "MCPGREEN_RECORD"
ANSWER_SECS = 30.0
MAX_SHOWN = 20  # differences of one answer
POLL_SECS = 0.1
POLLED = "tasks/get"
SENDERS = ("client", "server")
LOG, PROGRESS = "notifications/message", "notifications/progress"
REFUSAL: Json = {"error": {"code": -1, "message": "The recording has no answer to this question."}}


def record(options: Options) -> int:
    """Become a server that records its session. The command can stand in a client's configuration."""
    words = options["WORD"]
    if words[0] != "serve" or any(word.startswith("--http") for word in words):
        raise UsageError("record needs mcpgreen serve over stdio: write -- serve --project-root DIR.")
    program = program_words(os.environ)
    os.environ[VARIABLE] = os.path.abspath(os.path.expanduser(options["FILE"]))
    os.execv(program[0], [*program, *words])


def replay(options: Options) -> int:
    """Return 1 if something differs."""
    if options["--serve"]:
        return play(Recording(options["FILE"]))
    project, _, _ = open_named(options)
    session = Replay(Recording(options["FILE"], project.root), project.root, options["FILE"])
    try:
        session.play()
    finally:
        session.connection.close()
    count = f"{session.answers} answer{'s' * (session.answers != 1)}"
    text = f"{count}, {session.differences} difference{'s' * (session.differences != 1)}"
    put(painted(text, RED if session.differences else GREEN, sys.stdout) + "\n", sys.stdout)
    return 1 if session.differences else 0


class Replay:
    """A session with a server for the project at `root`. Says what differs from the recording in the file `path`."""

    def __init__(self, recording: Recording, root: str, path: str) -> None:
        env = {name: value for name, value in os.environ.items() if name != VARIABLE}
        self.connection = Connection((*program_words(env), "serve", "--project-root", root), env=env, cwd=root)
        self.answers = 0  # that were compared
        self.differences = 0
        # What a recording hides is not compared, and must not be in a report either.
        self._hide = Secrets(values=[value for name, value in env.items() if is_secret_name(name)]).text
        self._path = path
        self._line = 0  # of the recording, where we are
        self._recording = recording
        self._requests: dict[object, Json] = {}  # as they were sent, by id
        self._answers: dict[object, Json] = {}  # that are not compared yet
        sent, heard = ([each.message for each in recording.messages if each.sender == who] for who in SENDERS)
        self._questions = [each for each in heard if is_request(each)]
        self._replies = {each["id"]: each for each in sent if "id" in each and "method" not in each}
        self._said: dict[str, Counter[str]] = {"missing": Counter(), "new": Counter()}  # besides answers

    def play(self) -> None:
        """Play the session, and say what differs."""
        try:
            for line, sender, message in self._recording.messages:
                self._line = line
                if sender == "client":
                    self._send(message)
                elif "method" in message:
                    self._note("missing", message)
                elif message.get("id") in self._requests:
                    self._compare(message, self._requests[message["id"]])
        except NoAnswer as error:
            self._report("a message", [f"the server does not answer: {error}"])
            return
        then, now = self._said.values()
        details = [f"missing: {each}" for each in (then - now).elements()]
        details += [f"new: {each}" for each in (now - then).elements()]
        self._report("questions and notifications", details)

    def _report(self, what: str, details: list[str]) -> None:
        if details:
            self.differences += 1
            put(painted("differs", RED, sys.stdout), sys.stdout)
            shown = "\n".join(map(self._hide, details[:MAX_SHOWN])).replace("\n", "\n    ")
            say(f" {what} ({self._path}:{self._line})\n    {shown}\n")

    def _send(self, message: Json) -> None:
        message = self._recording.translated(message)
        if not message:
            self._report("a message", ["it was not recorded, so it is not sent"])
        elif "method" in message:  # an answer is sent when the server asks
            if "id" in message:
                self._requests[message["id"]] = message
            if message["method"] != POLLED:
                self.connection.send(message)

    def _compare(self, message: Json, request: Json) -> None:
        """Wait for the answer to the same request, and compare it."""
        if request["method"] == POLLED and _is_working(message):
            return  # how often a client looks at a task depends on the time
        self.answers += 1
        live = self._answer_to(request)
        params = request.get("params", {})
        details = self._recording.differences(message, live) if live else [f"no answer within {ANSWER_SECS:g} s"]
        self._report(f"{request['method']} {params.get('name') or params.get('uri') or ''}".strip(), details)

    def _answer_to(self, request: Json) -> Json | None:
        until = time.monotonic() + ANSWER_SECS
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
        """Take the next message of the server, and reply if it is a question. Return False if none comes in time."""
        message = self.connection.receive(until)
        if message is None:
            return False
        if "method" not in message:
            self._answers[message.get("id")] = message
        else:
            self._note("new", message)
            if "id" in message:
                self.connection.send({**self._reply_to(message), "id": message["id"]})
        return True

    def _reply_to(self, question: Json) -> Json:
        """Return what the client said to the same recorded question, or else to the next one of this kind."""
        similar = [each for each in self._questions if each["method"] == question["method"]]
        if not similar:
            return REFUSAL
        asked = next((each for each in similar if each.get("params") == question.get("params")), similar[0])
        self._questions.remove(asked)
        return self._replies.get(asked["id"], REFUSAL)

    def _note(self, kind: str, message: Json) -> None:
        """Keep a question or a notification that matters. Of progress, only whether there is any."""
        method, params, said = message["method"], message.get("params", {}), self._said[kind]
        if method == PROGRESS:
            said[f"{method} for {params.get(TOKEN)}"] = 1
        elif method == LOG or "id" in message:
            said[self._hide(f"{method} {self._recording.shown(params)}")] += 1


def _is_working(answer: Json) -> bool:
    return bool(answer.get("result", {}).get("status") == "working")
