"""One resident process: its life as a table, and the lines that it and the server write to each other.

The process is a run of a script like any other, in a greenlet of its own: it is started, watched and stopped by the
`Runner`, with everything that it has started. It reads calls from one pipe, and its control pipe carries the answers. A
call is one line there and one line back; the greenlet of the call waits in between, and nothing else.

Rule: `TRANSITIONS` is all that can happen to a process. A line is never trusted: an answer finds its call by a number
that is not used twice, and what cannot be understood costs a warning.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent
from gevent.event import Event as Bell

from mcpgreen import journal
from mcpgreen.errors import RpcError
from mcpgreen.running.processes.pipes import RETRY_SECS, SMALL_BYTES, WRITE_EVENT, OutputPlace, Tail
from mcpgreen.running.processes.run import DRAIN_SECS, KILL_GRACE_SECS, Deadline, Ending, Outcome, ScriptRun, Stays
from mcpgreen.running.processes.stopping import is_alive, signal_group
from mcpgreen.running.runner import Runner, run_script
from mcpgreen.running.scripts.channel import Channel, Listener, report
from mcpgreen.running.shares import LANE, let_others
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

LARGE_LINE_BYTES = 1 << 17  # a longer one is parsed in a greenlet of its own
MAX_UNSENT_BYTES = 1 << 26
ANSWER_SECS = 0.001  # of the hub's time, which an awaited answer may take without slowing its process down
# A long line with a result: what is between the two is not parsed here.
_RESULT = re.compile(rb'{ *"result" *: *(.*\S) *, *"call" *: *(\d{1,15}) *}\s*', re.DOTALL)
TIMED_OUT = 124  # the exit code that `timeout` has
Answer = tuple[bytes, bytes, bytes]  # what a script would print, and its reports of an error and of embedded files
NO_ANSWER = b"", b"", b""


class State:
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    DRAINING = "draining"  # it serves the calls that it has, and gets no more
    STOPPING = "stopping"  # it has no calls, and its pipe of calls is closed
    GONE = "gone"


OPEN = (State.STARTING, State.READY, State.BUSY, State.DRAINING)  # it can still be told something
# What each event leads to. In a state that its row does not have, an event changes nothing.
TRANSITIONS = {
    "ready": {State.STARTING: State.READY},
    "call": {State.READY: State.BUSY},
    "rest": {State.BUSY: State.READY, State.DRAINING: State.STOPPING},  # its last call has ended
    "retire": {State.STARTING: State.STOPPING, State.READY: State.STOPPING, State.BUSY: State.DRAINING},
    "end": dict.fromkeys(OPEN, State.STOPPING),
    "exit": dict.fromkeys((*OPEN, State.STOPPING), State.GONE),
}


class Exchange:
    """One call that a process serves, the `calls`th there. Without a `listener`, nothing waits for its answer."""

    way = "resident"

    def __init__(self, pid: int, calls: int, listener: Listener) -> None:
        self.pid = pid
        self.calls = calls
        self.listener: Listener | None = listener
        self.began_at = self.ended_at = time.monotonic()
        self.answered = Bell()
        self.answer: Answer = NO_ANSWER
        self.place: OutputPlace | None = None
        self.fault = ""
        self.exit_code = 0

    def fail(self, fault: str, exit_code: int = 1) -> None:
        self.fault, self.exit_code = fault, exit_code
        self.answered.set()


class Resident:
    """A process from its start to its end. `on_change` is called when it has become ready, has room, or is gone."""

    def __init__(self, runner: Runner, run: ScriptRun, stays: Stays, on_change: Callable[[Resident], None]) -> None:
        """Raises OSError if there is no descriptor left."""
        self.state = State.STARTING
        self.label = run.script.label
        self.stays = stays
        self.pid = 0  # until it is ready
        self.fault = ""  # what went wrong, as the beginning of a sentence
        self.exit_code = 1
        self.refusal: RpcError | None = None  # why it could not be started
        self.is_worn = False  # another one is to take its place
        self.is_unwanted = False  # it is let go
        self.served = 0
        self.used_at = self._began_at = time.monotonic()
        self._runner = runner
        self._on_change = on_change
        self._calls: dict[int, Exchange] = {}
        self._mentioned: set[str] = set()
        self._unsent = bytearray()
        self._writer: Any = None
        self._lines = AnswerLines(self, run.limits.stdout_bytes)
        self.tail = Tail()
        self._serial = run.serial
        their_fd, self._calls_fd = os.pipe()
        os.set_blocking(self._calls_fd, False)
        self._their_end = os.fdopen(their_fd, "rb", 0)  # until it has its own
        run = run._replace(on_control=self._lines.feed, owner=self, on_closed=self._on_closed)
        self._life = gevent.spawn(self._live, run._replace(tail=self.tail, calls_fd=their_fd))
        self._life.rawlink(self._on_end)
        late = f"The process was not ready after {stays.start_secs:g} s (startSecs)"
        self._starter = gevent.spawn_later(stays.start_secs, self._end_in, State.STARTING, late)

    @property
    def has_room(self) -> bool:
        """Whether the next line of the process may be heard."""
        listeners = [each.listener for each in self._calls.values()]
        return self._lines.is_free and all(each is None or each.has_room for each in listeners)

    @property
    def room(self) -> int:
        """How many more calls it can take, now or when it is ready."""
        return self.stays.concurrency - len(self._calls) if self.state in (State.READY, State.BUSY) else 0

    def new_place(self) -> OutputPlace:
        return self._runner.output_place(self)

    def call(self, line: tuple[bytes, bytes], deadline: Deadline, listener: Listener) -> tuple[Outcome, bytes, bytes]:
        """Have a call served; `line` is what comes before and after its number. Return the outcome, as if a script had
        printed the answer, and the reports. A process that did not become ready says why. Raises RpcError."""
        if self.refusal is not None:
            raise self.refusal
        self._on("call")
        self.served = number = self.served + 1
        exchange = self._calls[number] = Exchange(self.pid, number, listener)
        printed_before, ended_by = self.tail.size, Ending.EXIT
        if self.state == State.GONE:
            printed_before = 0
            self._fail_calls()
        self.send(b"%b%d%b" % (line[0], number, line[1]))
        del line  # it may be long, and so may the call
        try:
            while not exchange.answered.is_set():
                remaining_secs = deadline.remaining_secs()
                if remaining_secs <= 0:
                    ended_by, exchange.exit_code = Ending.DEADLINE, TIMED_OUT
                    self._give_up(number, "timeout")
                    break
                exchange.answered.wait(remaining_secs)
        except BaseException:
            self._give_up(number, "cancelled")
            raise
        exchange.ended_at, exchange.listener = time.monotonic(), None
        # Of several calls at a time, it is not known which of them has printed something.
        is_log_of_call = bool(exchange.fault) or self.stays.concurrency == 1
        stderr = self.tail.since(printed_before) if is_log_of_call else b""
        (stdout, error, resources), exchange.answer = exchange.answer, NO_ANSWER
        place, code = exchange.place or self.new_place(), exchange.exit_code
        return Outcome(code, [stdout], stderr, ended_by, place, exchange, exchange.fault), error, resources

    def retire(self) -> None:
        """Let it go when it has no calls left."""
        self.is_unwanted = True
        self._on("retire")

    def kill(self) -> None:
        """Stop it with everything that it has started."""
        self._life.kill(block=False)

    def kill_now(self) -> None:
        """Kill it, if it is being stopped and does not end."""
        if pid := self._runner.process_of(self._serial):
            signal_group(pid, signal.SIGKILL)

    def send(self, line: bytes) -> None:
        """Write a line to the process. Never waits."""
        if self._calls_fd >= 0:
            self._unsent += line
            self._flush()
            if len(self._unsent) > MAX_UNSENT_BYTES:
                self.end("The process does not read its calls")

    def end(self, fault: str) -> None:
        """End it now: the calls that it has fail for this reason."""
        self.fault = self.fault or fault
        self._fail_calls()
        self._on("end")
        self.kill()

    def hear(self, message: object, size_bytes: int, place: OutputPlace | None = None) -> None:
        """Take a line of the process. Never waits."""
        if type(message) is not dict:
            self.mention("wrote a line that is not a JSON object")
            return
        number = message.get("call")
        exchange = self._calls.get(number) if type(number) is int else None
        if message.get("ready"):
            if self.state == State.STARTING:
                self._become_ready()
        elif "result" in message or "error" in message:
            if exchange is not None:
                self._take_answer(exchange, message, place)
            elif self.state not in (State.DRAINING, State.STOPPING):  # where calls have been given up
                is_known = type(number) is int and 0 < number <= self.served
                self.mention("answered twice" if is_known else "answered an unknown call")
        else:
            if number is None and len(self._calls) == 1:
                (exchange,) = self._calls.values()  # of a script that knows the control pipe only
            if exchange is not None and exchange.listener is not None:
                reply = partial(self._reply, message.get("id"), number)
                if fault := report(exchange.listener, message, reply, size_bytes):
                    self.mention(f"wrote a line {fault}")

    def mention(self, fault: str) -> None:
        """Warn about something that the process has done and that does not cost its life."""
        if fault not in self._mentioned:  # one that does it once does it often
            self._mentioned.add(fault)
            journal.warning("%s (resident %d) %s", self.label, self.pid, fault)

    def _reply(self, question: object, number: object, outcomes: Json) -> None:
        question = question if jsontext.is_writable(question) else None
        self.send(jsontext.dumps({"reply": outcomes, "id": question, "call": number}) + b"\n")

    def _take_answer(self, exchange: Exchange, message: Json, place: OutputPlace | None) -> None:
        if exchange.listener is not None:
            exchange.place = place
            try:
                exchange.answer = _as_printed(message)
                exchange.answered.set()
            except ValueError:
                exchange.fail("The process answered with a number that is too large")
            self._lines.credit_secs += ANSWER_SECS
        self._forget(exchange.calls)

    def _forget(self, number: int) -> None:
        del self._calls[number]
        self.used_at = time.monotonic()
        if not self._calls:
            self._on("rest")
        self._on_change(self)

    def _give_up(self, number: int, reason: str) -> None:
        """Tell the process that the answer to a call is not needed any more; it has a moment to say that it is done."""
        exchange = self._calls.get(number)
        if exchange is not None:
            exchange.listener = None
            self.send(b'{"cancel":%d,"reason":"%b"}\n' % (number, reason.encode("ascii")))
            gevent.spawn_later(KILL_GRACE_SECS, self._end_given_up, number)

    def _end_given_up(self, number: int) -> None:
        if [*self._calls] == [number]:
            self.end("The process did not end a call that was cancelled")
        elif number in self._calls:
            self._on("retire")
            self._forget(number)

    def _become_ready(self) -> None:
        self.pid = self._runner.process_of(self._serial) or 0
        self._starter.kill(block=False)
        self._their_end.close()
        self._on("ready")
        journal.info("%s has a new process: resident %d", self.label, self.pid)
        self._on_change(self)

    def _on(self, event: str) -> None:
        """Go to the next state, and do what belongs to it."""
        before, self.state = self.state, TRANSITIONS[event].get(self.state, self.state)
        if self.state == State.STOPPING and before != State.STOPPING:
            self._close_calls()
            gevent.spawn_later(KILL_GRACE_SECS, self.kill)

    def _on_closed(self, what: str = "answers") -> None:
        """It has closed its end of a pipe. That is no news if it ends in a moment. Never waits."""
        if self.state not in (State.STOPPING, State.GONE):
            self._on("end")
            gevent.spawn_later(DRAIN_SECS, self._end_in, State.STOPPING, f"The process closed its {what}")

    def _end_in(self, state: str, fault: str) -> None:
        """End it if it is still in this state, and has not ended by itself."""
        pid = self._runner.process_of(self._serial)
        if self.state == state and (pid is None or is_alive(pid)):
            self.end(fault)

    def _live(self, run: ScriptRun) -> None:
        """Run to the end."""
        try:
            self.exit_code = run_script(self._runner, run).exit_code
        except RpcError as error:
            self.refusal, self.fault = error, error.message
            return
        while not self._lines.is_free:
            gevent.sleep(RETRY_SECS)  # its last line is being read
        self.fault = self.fault or _end_in_words(self.exit_code)

    def _on_end(self, _: gevent.Greenlet) -> None:
        """In the hub: no process is left of it, or what is left is being stopped."""
        self._starter.kill(block=False)
        self._close_calls()
        self._their_end.close()
        self.fault = self.fault or "The process was stopped"
        self._on("exit")
        self._fail_calls()
        lived = f"{self.served} call{'s' * (self.served != 1)} in {time.monotonic() - self._began_at:.0f} s"
        journal.info("resident %d of %s is gone after %s: %s", self.pid, self.label, lived, self.fault)
        self._on_change(self)

    def _fail_calls(self) -> None:
        while self._calls:
            self._calls.popitem()[1].fail(self.fault, self.exit_code)

    def _flush(self) -> None:
        """Write as much as the process can take now, and the rest when it reads again."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._calls_fd, self._unsent)]
        except BlockingIOError:
            self._writer = self._writer or gevent.get_hub().loop.io(self._calls_fd, WRITE_EVENT)
            self._writer.start(self._flush)
            return
        except BrokenPipeError:
            self._on_closed("calls")
            return
        if self._writer is not None:
            self._writer.stop()

    def _close_calls(self) -> None:
        if self._calls_fd >= 0:
            if self._writer is not None:
                self._writer.close()
            self._unsent.clear()
            os.close(self._calls_fd)
            self._calls_fd = -1


class AnswerLines(Channel):
    """Cuts the answers of a process into lines. A long line is parsed in a greenlet of its own, and none after it is
    heard meanwhile; what is very long needs a place in memory."""

    def __init__(self, resident: Resident, max_line_bytes: int) -> None:
        super().__init__(resident)  # type: ignore[arg-type]  # only its room is asked for
        self.max_line_bytes = max_line_bytes
        self.is_free = True
        self._resident = resident
        self._place = resident.new_place()

    def feed(self, chunk: bytes) -> float:
        rest_secs = super().feed(chunk)
        if self._begun_bytes > SMALL_BYTES and not self._is_skipping and not self._place.take():
            return max(rest_secs, RETRY_SECS)
        return rest_secs

    def _warn(self, what: str) -> None:
        """In the hub: a line is too long."""
        self._place.release()
        self._resident.end(f"The process answered with a line longer than {self.max_line_bytes} bytes")

    def _hear(self, line: bytes) -> None:
        if len(line) > self.max_line_bytes:
            self._warn("")
        elif len(line) > LARGE_LINE_BYTES:
            self.is_free = False
            place, self._place = self._place, self._resident.new_place()
            gevent.spawn(self._hear_large, line, place)
        else:
            self._understand(line, None)

    def _hear_large(self, line: bytes, place: OutputPlace) -> None:
        try:
            with LANE:
                if (found := _RESULT.fullmatch(line)) and not found[1].startswith(b'"'):
                    message = {"result": found[1], "call": int(found[2])}  # as printed: it is parsed later
                    self._resident.hear(message, len(line), place)
                else:
                    self._understand(line, place)
        finally:
            self.is_free = True

    def _understand(self, line: bytes, place: OutputPlace | None) -> None:
        try:
            text = line if line.isascii() else line.decode("utf-8", "replace")
            message = jsontext.loads(text, turn=None if place is None else let_others)
        except ValueError as error:
            if place is None:
                self._resident.mention("wrote a line that is not JSON")
            else:
                self._resident.end(f"The process answered with a long line that cannot be read ({error})")
            return
        self._resident.hear(message, len(line), place)


def _as_printed(message: Json) -> Answer:
    """Raises ValueError for a number such as 1e999."""
    error, result = message.get("error"), message.get("result")
    if type(error) is dict and "code" in error:
        return b"", jsontext.dumps(error), b""
    if error is not None:
        text = error if type(error) is str else jsontext.dumps(error).decode("ascii")
        return jsontext.dumps({"content": [{"type": "text", "text": text}], "isError": True}), b"", b""
    if type(result) is str:
        result = result.encode("utf-8", "replace")
    elif type(result) is not bytes:
        result = b"" if result is None else jsontext.dumps(result)
    return result, b"", jsontext.dumps(message["resources"]) if "resources" in message else b""


def _end_in_words(exit_code: int) -> str:
    try:
        return f"The process was killed by {signal.Signals(exit_code - 128).name}"
    except ValueError:
        return f"The process ended with exit code {exit_code}"
