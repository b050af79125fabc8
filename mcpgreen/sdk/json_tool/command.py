"""The small jq as a program: options, inputs, outputs and exit statuses.

Statuses: 0; 1 with -e when the last output was false or null, 4 when there was none; 2 for wrong options and for files
that cannot be read; 3 for a filter that makes no sense here; 5 when a filter failed or the input is not JSON; and what
`halt_error` says.
"""

from __future__ import annotations

import os
import sys

from .filters import INPUTS
from .language import compile_filter
from .tokens import Mistake
from .values import FilterError, Halt, dumps, is_true, loads, values_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

OK, FALSE, USAGE, MISTAKE, NOTHING, FAILED = range(6)
USAGE_TEXT = "usage: json-tool [-cejnrsRSa] [--arg NAME VALUE] [--argjson NAME JSON] [-f FILE] FILTER [FILE...]"
VERSION_TEXT = "jq-1.6 (json-tool of mcpgreen)"  # as jq writes it, for scripts that look
SWITCHES = {
    "raw-output": "r",
    "compact-output": "c",
    "exit-status": "e",
    "null-input": "n",
    "slurp": "s",
    "sort-keys": "S",
    "join-output": "j",
    "raw-input": "R",
    "ascii-output": "a",
    "color-output": "C",
    "monochrome-output": "M",
    "unbuffered": "unbuffered",
    "tab": "tab",
    "help": "h",
    "version": "V",
}
WITH_VALUES = {"arg": 2, "argjson": 2, "slurpfile": 2, "rawfile": 2, "indent": 1, "from-file": 1}


class BadUsage(Exception):
    pass


class Options:
    """The command line, understood."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.switches: set[str] = set()
        self.variables: dict[str, Any] = {}
        self.positional: list[Any] = []
        self.files: list[str] = []
        self.indent: Any = 2
        self.program_file: str | None = None
        self._rest_is: str | None = None  # args or jsonargs: what the remaining words are
        self._words = list(arguments)
        while self._words:
            self._read(self._words.pop(0))
        self.program = ""
        if self.program_file is not None:
            self.program = _content(self.program_file)
        elif self.files:
            self.program = self.files.pop(0)
        elif not self.switches & {"h", "V"}:
            raise BadUsage("a filter is missing")

    def _read(self, word: str) -> None:
        if word == "--":
            while self._words:
                self._read_plain(self._words.pop(0))
        elif word in ("--args", "--jsonargs"):
            self._rest_is = word
        elif word.startswith("--"):
            self._read_long(word[2:])
        elif word.startswith("-") and word[1:].isalpha():
            for letter in word[1:]:
                if letter != "f" and letter not in SWITCHES.values():
                    raise BadUsage(f"the option -{letter} is not known")
                self._read_long("from-file") if letter == "f" else self.switches.add(letter)
        else:
            self._read_plain(word)

    def _read_plain(self, word: str) -> None:
        if self._rest_is and (self.files or self.program_file):
            self.positional.append(word if self._rest_is == "--args" else _json(word))
        else:
            self.files.append(word)

    def _read_long(self, name: str) -> None:
        if name in SWITCHES:
            self.switches.add(SWITCHES[name])
            return
        if name not in WITH_VALUES:
            raise BadUsage(f"the option --{name} is not known")
        if len(self._words) < WITH_VALUES[name]:
            raise BadUsage(f"--{name} needs {WITH_VALUES[name]} more words")
        first = self._words.pop(0)
        if name == "from-file":
            self.program_file = first
        elif name == "indent":
            if first not in list("01234567"):
                raise BadUsage("--indent takes a number from 0 to 7")
            self.indent = int(first) or None
        else:
            self._define(name, first, self._words.pop(0))

    def _define(self, kind: str, name: str, value: str) -> None:
        if kind == "arg":
            self.variables[name] = value
        elif kind == "argjson":
            self.variables[name] = _json(value)
        elif kind == "rawfile":
            self.variables[name] = _content(value)
        else:
            self.variables[name] = list(values_in(_content(value)))


def main(arguments: Sequence[str]) -> int:
    """Run a filter over the input. The exit status."""
    sys.setrecursionlimit(5000)
    try:
        options = Options(arguments)
        if options.switches & {"h", "V"}:
            print(USAGE_TEXT if "h" in options.switches else VERSION_TEXT)
            return OK
        named = {**options.variables, "ARGS": {"positional": options.positional, "named": options.variables}}
        run = compile_filter(options.program, named)
        return _run(run, {"$" + name: value for name, value in named.items()}, options)
    except (BadUsage, ValueError) as error:
        return _told(USAGE, f"json-tool: {error}\n{USAGE_TEXT}")
    except Mistake as error:
        return _told(MISTAKE, f"json-tool: {error}")
    except Halt as end:
        if end.message is not None:
            sys.stderr.write(end.message if isinstance(end.message, str) else dumps(end.message) + "\n")
        return end.status
    except RecursionError:
        return _told(FAILED, "json-tool: error: filter or input is nested too deeply")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads any more, and Python would complain at its end
        return USAGE


def _run(run: Any, env: dict[str, Any], options: Options) -> int:
    status = OK
    last: list[Any] = []
    inputs = _inputs(options)
    env[INPUTS] = inputs
    with open(1, "w", encoding="utf-8", errors="surrogatepass", newline="\n", closefd=False) as out:
        try:
            for value in (None,) if "n" in options.switches else inputs:
                try:
                    for result, _ in run(env, (value, None)):
                        last = [result]
                        out.write(_written(result, options))
                        if "unbuffered" in options.switches:
                            out.flush()
                except FilterError as error:
                    out.flush()
                    status = _told(FAILED, f"json-tool: error: {_reason(error.value)}")
        except ValueError as error:
            out.flush()
            status = _told(FAILED, f"json-tool: error: the input is not JSON: {error}")
    if "e" in options.switches and status == OK:
        return NOTHING if not last else OK if is_true(last[0]) else FALSE
    return status


def _reason(value: Any) -> str:
    return value if isinstance(value, str) else f"{dumps(value)} (not a string)"


def _written(value: Any, options: Options) -> str:
    switches = options.switches
    end = "" if "j" in switches else "\n"
    if isinstance(value, str) and switches & {"r", "j"}:
        return _whole(value) + end
    indent = None if "c" in switches or "j" in switches else "\t" if "tab" in switches else options.indent
    return _whole(dumps(value, indent=indent, sort_keys="S" in switches, ascii_only="a" in switches)) + end


def _whole(text: str) -> str:
    """Half a surrogate pair, which JSON can express and UTF-8 cannot, becomes a replacement character."""
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text) if not _is_utf8(text) else text


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _inputs(options: Options) -> Iterator[Any]:
    """The values of all files or of stdin, one after the other; read when they are asked for."""
    switches = options.switches
    if "R" in switches and "s" not in switches:
        yield from _lines(options.files)
        return
    text = "".join(map(_content, options.files)) if options.files else _content(None)
    if "R" in switches:
        yield text
    elif "s" in switches:
        yield list(values_in(text))
    else:
        yield from values_in(text)


def _lines(files: Sequence[str]) -> Iterator[str]:
    if files:
        text = "".join(map(_content, files))
        yield from text.removesuffix("\n").split("\n") if text else ()
        return
    with open(0, encoding="utf-8", errors="replace", newline="\n", closefd=False) as stream:
        while line := stream.readline():
            yield line.removesuffix("\n")


def _content(path: str | None) -> str:
    try:
        with open(
            0 if path is None else path, encoding="utf-8", errors="replace", newline="", closefd=bool(path)
        ) as file:
            return file.read()
    except OSError as error:
        raise BadUsage(f"{path or 'the input'} cannot be read: {error.strerror}") from None


def _json(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        raise BadUsage(f"{text!r} is not JSON") from None


def _told(status: int, text: str) -> int:
    print(text, file=sys.stderr)
    return status
