"""Run a command with the arguments of the call. A part of `mcp_tool`, loaded on demand.

No shell reads the words, and a client cannot add options: a value that begins with `-` is refused where the command
could take it for an option.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from tempfile import TemporaryFile
from typing import Any, NoReturn

import mcp_tool

__all__ = ["CommandLine"]

LIMIT_BYTES = 1_000_000  # of the output of the command
STDERR_BYTES = 4000  # of the end of its stderr
MAX_COUNT = 10
CHUNK_BYTES = 65536
TASK_RUNNERS = ("make", "gmake", "just", "npm", "pnpm", "yarn", "bun")  # they pass their words to a shell
PLACE = "{}"
ALL_PLACES = "{}..."


class CommandLine:
    """The words of a command. Each method takes the name of an argument of the call, and adds words if it is given."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self._stdin = ""
        self._is_open = True  # a word that begins with `-` may still be an option
        self._has_pending_end = False
        self._absent = ""  # an operand that is missing before the next one

    def flag(self, name: str, word: str, off: str = "") -> None:
        """Add the word if the argument is true. If it is false, add `off` unless that is empty."""
        value = mcp_tool.arg(name)
        if value is True:
            self.words.append(word)
        elif value is False and off:
            self.words.append(off)

    def count(self, name: str, word: str) -> None:
        """Add the word as many times as the argument says."""
        number = mcp_tool.arg_int(name, 0, min=0, max=MAX_COUNT)
        self.words += [word] * number

    def option(self, name: str, *words: str, bare: str = "") -> None:
        """Add words with the value in them: `"--size={}"`, or `"-s", "{}"`. A list adds them for each of its items.

        Several `{}` take the items of a list one after the other, and `"{}..."` takes all of them. For an empty value,
        `bare` is added instead unless it is empty."""
        value = mcp_tool.arg(name)
        if value is None or value == []:
            return
        if value == "" and bare:
            self.words.append(bare)
            return
        places = words.count(PLACE)
        if places > 1:
            rows = value if value and all(isinstance(item, list) for item in value) else [value]
            for row in rows:
                self._add_row(name, words, row, places)
        elif ALL_PLACES in words:
            for word in words:
                self.words += [self._value(name, item) for item in _items(value)] if word == ALL_PLACES else [word]
        else:
            for item in _items(value):
                self.words += [self._filled(name, word, item) for word in words]

    def operand(self, name: str) -> None:
        """Add the value, or all items of a list. Refused are a value that begins with `-` before the end of options,
        and a value after a missing operand, because the command would take it for that operand."""
        value = mcp_tool.arg(name)
        if value is None or value == []:
            self._absent = self._absent or name
            return
        if self._absent:
            _end(1, f"{name} can only be given together with {self._absent}, which stands before it.")
        if self._has_pending_end:
            self.words.append("--")
            self._has_pending_end, self._is_open = False, False
        self.words += [self._operand(name, item) for item in _items(value)]

    def end_of_options(self) -> None:
        """Add `--` before the next operand. No word after it is an option."""
        self._has_pending_end = True
        self._absent = ""

    def stdin(self, name: str) -> None:
        """Pass this argument as standard input, which is empty otherwise."""
        self._stdin = str(mcp_tool.arg(name, ""))

    def run(self, limit_bytes: int = LIMIT_BYTES) -> NoReturn:
        """Run the command, print its output as the result of the tool, and end the script with its status."""
        is_runner = os.path.basename(self.words[0]) in TASK_RUNNERS
        if is_runner and any(ord(char) < 32 or 127 <= ord(char) < 160 for word in self.words for char in word):
            _end(1, "A value has a newline or another control character, which a shell could take for a command.")
        with TemporaryFile() if self._stdin else open(os.devnull, "w+b") as stdin:
            stdin.write(self._stdin.encode("utf-8", "replace"))
            stdin.seek(0)
            try:
                process = subprocess.Popen(self.words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            except FileNotFoundError:
                _end(127, f"{self.words[0]} cannot be found. Is it installed, and on the PATH of the server?")
            except (OSError, ValueError) as error:  # not executable, too long, or with a NUL
                _end(126, f"{self.words[0]} cannot be started: {getattr(error, 'strerror', None) or error}")
        printed, complaint, is_too_much = _output(process, limit_bytes)
        if is_too_much:
            process.kill()
        status = process.wait()
        status = 128 - status if status < 0 else status
        name, text = os.path.basename(self.words[0]), printed.decode("utf-8", "replace")
        sys.stderr.write(complaint.decode("utf-8", "backslashreplace"))
        end = complaint.decode("utf-8", "replace").strip()
        if is_too_much:
            _end(1, f"{name} was stopped: it printed more than {limit_bytes} bytes.", end, text)
        if status:
            _end(status, f"{name} failed with exit status {status}.", end, text)
        mcp_tool.result(text if text.strip() else end or "It printed nothing.")
        raise SystemExit(0)

    def _add_row(self, name: str, words: tuple[str, ...], row: object, places: int) -> None:
        items = _items(row)
        if len(items) != places:
            _end(1, f"{name} needs {places} values.")
        rest = iter(items)
        self.words += [self._value(name, next(rest)) if word == PLACE else word for word in words]

    def _filled(self, name: str, word: str, item: object) -> str:
        if word == PLACE:
            return self._value(name, item)
        text = _text(item)
        if not text and word.endswith(PLACE) and word[-3:-2] not in ("=", ","):
            _end(1, f"{name} must not be empty.")  # the command would take the next word as the value
        return word.replace(PLACE, text)

    def _value(self, name: str, item: object) -> str:
        """A value that is a word of its own. A negative number is allowed."""
        return self._operand(name, item) if isinstance(item, str) else _text(item)

    def _operand(self, name: str, item: object) -> str:
        text = _text(item)
        if self._is_open and text.startswith("-") and text != "-":
            shown = text if len(text) <= 60 else f"{text[:60]}..."
            _end(1, f"{name} must not begin with '-', so that the command cannot take it for an option: {shown}")
        return text


def _end(status: int, reason: str, complaint: str = "", printed: str = "") -> NoReturn:
    """Print a failed result for the model, and end the script."""
    reason = f"{reason}\n{complaint}" if complaint else reason
    mcp_tool.result(reason, *([printed] if printed.strip() else []), is_error=True)
    raise SystemExit(status)


def _output(process: subprocess.Popen[bytes], limit_bytes: int) -> tuple[bytes, bytes, bool]:
    """The output up to the limit, the end of stderr, and whether there was more output."""
    assert process.stdout is not None and process.stderr is not None
    printed, complaint = bytearray(), bytearray()
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, printed)
        selector.register(process.stderr, selectors.EVENT_READ, complaint)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
            del complaint[:-STDERR_BYTES]
            if len(printed) > limit_bytes:
                return bytes(printed[:limit_bytes]), bytes(complaint), True
    return bytes(printed), bytes(complaint), False


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():  # JSON does not tell 5 from 5.0
        value = int(value)
    return value if isinstance(value, str) else str(value)
