"""The built-in jq command, for hosts without jq. It uses the Python package `jq`.

Not a part of the server: it imports nothing from mcpgreen, and `json-tool` runs it with the Python of the package. The
package takes text and returns Python values, which would lose digits of numbers; so filters end with `tojson`, and the
resulting strings are printed.

Statuses: 0; 1 with -e when the last output was false or null, 4 when there was none; 2 for wrong options, for files
that cannot be read or written, and where the package is missing; 3 for an invalid filter; 5 when the filter
failed on the last input or the input is not JSON; and what `halt_error` says.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

USAGE_TEXT = "usage: jq [-acefhjnrsMRSV] [--arg NAME VALUE] [--argjson NAME JSON] FILTER [FILE...]"
VERSION_TEXT = "jq-1.8 (json-tool of mcpgreen)"  # as jq writes it, for scripts that look
# Under the long names, which are also those of `Options.switches`.
LONG_NAMES = (
    "a=ascii-output b=binary c=compact-output e=exit-status f=from-file h=help j=join-output n=null-input r=raw-output "
    "s=slurp C=color-output M=monochrome-output R=raw-input S=sort-keys V=version"
)
LETTERS = dict(each.split("=") for each in LONG_NAMES.split())
SWITCHES = {*LETTERS.values(), "unbuffered"}
FOLLOWED_BY = {"arg": 2, "argjson": 2, "rawfile": 2, "slurpfile": 2, "indent": 1}
OK, NOT_TRUE, UNUSABLE, NO_FILTER, NO_OUTPUT, FAILED = range(6)
ELSEWHERE = "the built-in jq cannot do this; install jq: apt install jq, or brew install jq"

# What the package leaves out, as far as filters can say it. `halt` is an error that `main` knows.
HALT = "jq halts"
HALTING = f"""def halt: error({{"{HALT}": [0, ""]}});
    def halt_error($status):
      error({{"{HALT}": [$status, if type == "string" then . elif . == null then "" else tojson + "\\n" end]}});
    def halt_error: halt_error({FAILED});"""
NO_INPUT = f'def input: error("input: {ELSEWHERE}");'
NO_INPUTS = f'{NO_INPUT} def inputs: error("inputs without -n: {ELSEWHERE}");'
ALL_INPUTS = f". as $__inputs | null | {NO_INPUT} def inputs: $__inputs[];"
SORTED = '| walk(if type == "object" then to_entries | sort_by(.key) | from_entries else . end)'
IN_TEXT = re.compile(r'"|\\.|[^"\\]+', re.DOTALL)
IN_FILTER = re.compile(r'["()]|#.*|[^"()#]+')
CALL_OF_INPUTS = re.compile(r"(?<![.$\w{])inputs?\b(?!\s*:)")  # not a key or a variable
PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|\[\]|\{\}|[\[\]{},:]|[^"\[\]{},:]+')


class BadUsage(Exception):
    pass


class Halted(Exception):
    def __init__(self, status: Any, message: str) -> None:
        super().__init__(message)
        is_number = isinstance(status, (int, float)) and abs(status) < 1 << 31
        self.status = int(status) if is_number else FAILED


class Options:
    """What is wanted."""

    def __init__(self, words: Sequence[str]) -> None:
        self.switches: set[str] = set()
        self.program = "."
        self.files: list[str] = []
        self.named: dict[str, Any] = {}
        self.positional: list[Any] = []
        self.indent = "  "  # empty for one line
        self._has_program = False
        self._rest_is: str | None = None
        self._words = list(words)
        while self._words:
            self._read(self._words.pop(0))
        if not self._has_program and "from-file" in self.switches:
            raise BadUsage("--from-file takes one parameter")

    def _read(self, word: str) -> None:
        if word == "--":
            while self._words:
                self._read_plain(self._words.pop(0))
        elif word.startswith("--"):
            self._read_option(word[2:])
        elif re.match(r"-[a-zA-Z]", word):
            for letter in word[1:]:
                self._read_option(LETTERS.get(letter, f"\0{letter}"))
        else:
            self._read_plain(word)

    def _read_plain(self, word: str) -> None:
        if not self._has_program:
            self.program, self._has_program = word or ".", True
        elif self._rest_is:
            self.positional.append(word if self._rest_is == "args" else _json_value(word, "jsonargs"))
        else:
            self.files.append(word)

    def _read_option(self, name: str) -> None:
        count = FOLLOWED_BY.get(name, 0)
        if len(self._words) < count:
            raise BadUsage(f"--{name} takes {'two parameters' if count == 2 else 'one parameter'}")
        following, self._words = self._words[:count], self._words[count:]
        if count == 2:
            self.named.setdefault(following[0], _named_value(name, following[1]))
        elif name in ("args", "jsonargs"):
            self._rest_is = name
        elif name == "indent":
            if following[0] not in tuple("01234567"):
                raise BadUsage("--indent takes a number between 0 and 7")
            self.indent = " " * int(following[0])
        elif name in ("tab", "compact-output"):
            self.indent = "\t" if name == "tab" else ""
        elif name in SWITCHES:
            self.switches.add(name)
        else:
            raise BadUsage(f"Unknown option {f'-{name[1:]}' if name.startswith(chr(0)) else f'--{name}'}; {ELSEWHERE}")


def _json_value(text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadUsage(f"invalid JSON text passed to --{option}") from None


def _named_value(option: str, text: str) -> Any:
    if option == "arg":
        return text
    if option == "argjson":
        return _json_value(text, option)
    content = _content_of(option, text)
    return content if option == "rawfile" else _json_value(f"[{','.join(_values_in(content))}]", option)


def _content_of(option: str, path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise BadUsage(f"--{option} {path}: {error.strerror}") from None


def _values_in(text: str) -> Iterator[str]:
    """Return the JSON values in a text, one by one, as JSON. Raises ValueError at the first that is not JSON."""
    import jq

    return iter(jq.compile("tojson").input_text(text.removeprefix("\ufeff")))


def main(arguments: Sequence[str]) -> int:
    """Run a filter over the input. The exit status."""
    # As any command does: Python would act on an interrupt after the last input, and on a closed pipe not at all.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        with open(1, "wb", closefd=False) as out:
            return run(arguments, out)
    except BadUsage as error:
        return _fail(UNUSABLE, f"{error}\n{USAGE_TEXT}")
    except ImportError as error:
        install = f"apt install jq, brew install jq, or {sys.executable or 'python3'} -m pip install jq"
        reason = f"this host has none, and the Python package jq cannot replace it: {error}"
        return _fail(UNUSABLE, f"{reason}. Install one of them: {install}")
    except OSError as error:
        return _fail(UNUSABLE, f"error: writing output failed: {error.strerror}")


def run(arguments: Sequence[str], out: BinaryIO) -> int:
    options = Options(arguments)
    if options.switches & {"help", "version"}:
        out.write(f"{USAGE_TEXT if 'help' in options.switches else VERSION_TEXT}\n".encode())
        return OK
    try:
        return Command(options, out).run()
    except ValueError as error:
        return _fail(NO_FILTER, str(error).removeprefix("jq: "))
    except Halted as halted:
        out.flush()
        _tell(str(halted))
        return halted.status


def _fail(status: int, sentence: str) -> int:
    _tell(f"jq: {sentence}\n")
    return status


def _tell(text: str) -> None:
    with suppress(OSError):  # stderr may be closed
        os.write(2, text.encode("utf-8", "surrogateescape"))


class Command:
    """A filter, its inputs, and where its outputs go."""

    def __init__(self, options: Options, out: BinaryIO) -> None:
        """Raises ValueError for an invalid filter."""
        import jq

        self._options, self._switches, self._out = options, options.switches, out
        self._is_raw = bool(self._switches & {"raw-output", "join-output"})
        self._has_failed_file = False
        program = options.program
        if "from-file" in self._switches:
            program = _content_of("from-file", program)
        if "\0" in program:
            raise BadUsage("program file contains NUL bytes")
        calls = CALL_OF_INPUTS.findall(_without_strings(program))
        if len(calls) > 1:
            raise BadUsage(f"inputs more than once: {ELSEWHERE}")  # the second would get what the first has left
        self._takes_all = "null-input" in self._switches and bool(calls)
        before = f"{ALL_INPUTS if self._takes_all else NO_INPUTS} {HALTING}".replace("\n", " ")
        after = SORTED if "sort-keys" in self._switches else ""
        args = {**options.named, "ARGS": {"positional": options.positional, "named": options.named}}
        try:
            self._filter = jq.compile(f"{before} ({program}\n) {after} | tojson", args=args)
        except ValueError:
            jq.compile(program, args=args)  # says it without what was put around
            raise

    def run(self) -> int:
        status, last_result = NO_OUTPUT, NO_OUTPUT
        try:
            for given in self._inputs():
                status = self._run_once(given)
                last_result = status if status in (OK, NOT_TRUE) else last_result
        except ValueError as error:
            self._out.flush()
            return _fail(FAILED, str(error))
        if self._has_failed_file:
            return UNUSABLE
        if "exit-status" in self._switches:
            return last_result if status == NO_OUTPUT else status
        return FAILED if status == FAILED else OK

    def _inputs(self) -> Iterator[str]:
        """Yield the inputs of the filter, as JSON. Raises ValueError at the first that is not JSON."""
        is_raw, is_slurped = "raw-input" in self._switches, "slurp" in self._switches
        if "null-input" in self._switches and not self._takes_all:
            yield "null"
            return
        if is_raw:
            lines = ["".join(self._lines())] if is_slurped else (line.removesuffix("\n") for line in self._lines())
            values: Iterable[str] = map(json.dumps, lines)
        else:
            values = _values_in("".join(self._lines()))
            values = [f"[{','.join(values)}]"] if is_slurped else values
        yield from [f"[{','.join(values)}]"] if self._takes_all else values

    def _lines(self) -> Iterator[str]:
        for name in self._options.files or ("-",):
            try:
                with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
                    for line in file:
                        yield line.decode("utf-8", "replace")
            except OSError as error:
                self._has_failed_file = True
                _fail(UNUSABLE, f"error: Could not open {name}: {error.strerror}")

    def _run_once(self, given: str) -> int:
        status = NO_OUTPUT
        try:
            for text in self._filter.input_text(given):
                status = NOT_TRUE if text in ("null", "false") else OK
                self._print(text)
        except ValueError as error:
            self._out.flush()
            reason = str(error)
            if reason.startswith(f'{{"{HALT}"'):
                raise Halted(*json.loads(reason)[HALT]) from None
            return _fail(FAILED, f"error: {reason}")
        return status

    def _print(self, text: str) -> None:
        if self._is_raw and text.startswith('"') and "ascii-output" not in self._switches:
            text = json.loads(text)
        elif self._options.indent:
            text = _indented(text, self._options.indent)
        if "ascii-output" in self._switches:
            text = re.sub(r"[^\x00-\x7f]", lambda odd: json.dumps(odd[0])[1:-1], text)
        self._out.write(text.encode("utf-8") + (b"" if "join-output" in self._switches else b"\n"))
        if "unbuffered" in self._switches:
            self._out.flush()


def _without_strings(program: str) -> str:
    """Return the filter without its strings and comments. Filters inside of strings stay."""
    pieces, opened, at = [], [""], 0
    while at < len(program):
        piece = (IN_TEXT if opened[-1] == '"' else IN_FILTER).match(program, at)
        found = piece[0] if piece else program[at]
        at += len(found)
        if opened[-1] == '"':
            if found == "\\(":
                opened.append("(")
            elif found == '"':
                opened.pop()
        elif found in ('"', "("):
            opened.append(found)
        elif found == ")" and len(opened) > 1:
            opened.pop()
        elif not found.startswith("#"):
            pieces.append(found)
    return " ".join(pieces)


def _indented(text: str, unit: str) -> str:
    """Spread compact JSON over many lines. Only strings can have spaces inside."""
    pieces, depth = [], 0
    for piece in PIECE.findall(text):
        if piece in ("{", "["):
            depth += 1
            pieces.append(f"{piece}\n{unit * depth}")
        elif piece in ("}", "]"):
            depth -= 1
            pieces.append(f"\n{unit * depth}{piece}")
        else:
            pieces.append(f",\n{unit * depth}" if piece == "," else ": " if piece == ":" else piece)
    return "".join(pieces)
