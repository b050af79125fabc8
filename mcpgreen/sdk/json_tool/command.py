"""The command jq: inputs, outputs and exit statuses. What filters mean is the business of libjq.

Statuses: 0; 1 with -e when the last output was false or null, 4 when there was none; 2 for wrong options, for files
that cannot be read or written, and where there is no libjq; 3 for a text that is no filter; 5 when the filter failed on
the last input or the input is not JSON; and what `halt_error` says.
"""

from __future__ import annotations

import _signal
import os
import sys

from .libjq import FALSE, INVALID, NULL, NUMBER, PRETTY, STREAMING, STRING, LibJq, Listener, NoLibrary
from .options import USAGE_TEXT, VERSION_TEXT, BadUsage, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO

    from .libjq import Value

OK, UNUSABLE, NO_FILTER, FAILED = 0, 2, 3, 5
NOT_TRUE, NO_OUTPUT = -1, -4  # no failures, unless -e makes them 1 and 4
MAX_NESTED_GROUPS = 1024  # in a regular expression: what jq allows, lest its stack overflows


def main(arguments: Sequence[str]) -> int:
    """Run a filter over the input. The exit status."""
    try:
        options = Options(arguments)
        if options.switches & {"help", "version"}:
            print(USAGE_TEXT if "help" in options.switches else VERSION_TEXT, flush=True)
            return OK
        _end_by_signals()
        library = LibJq()
        with open(1, "wb", closefd=False) as out:
            return Command(library, options, out).run()
    except BadUsage as error:
        return _unusable(f"{error}\n{USAGE_TEXT}")
    except NoLibrary as error:
        python = sys.executable or "python3"
        return _unusable(
            f"this host has none, and the Python package jq cannot stand in for it: {error}. "
            f"Install one of them: apt install jq, brew install jq, or {python} -m pip install jq"
        )
    except OSError as error:
        return _unusable(f"error: writing output failed: {error.strerror}")


def _end_by_signals() -> None:
    """As any command does: Python would act on an interrupt after the last input, and on a closed pipe not at all."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def _unusable(sentence: str) -> int:
    _tell(os.fsencode(f"jq: {sentence}\n"))
    return UNUSABLE


def _tell(content: bytes) -> None:
    try:
        with open(2, "wb", closefd=False) as stream:
            stream.write(content)
    except OSError:
        pass  # nobody wants to hear it


class Command:
    """A filter, its inputs, and where its outputs go."""

    def __init__(self, library: LibJq, options: Options, out: BinaryIO) -> None:
        self._library = library
        self._api = library.api
        self._options = options
        self._switches = options.switches
        self._print_flags = options.print_flags
        self._is_raw = bool(self._switches & {"raw-output", "join-output"})
        self._line_end = b"" if "join-output" in self._switches else b"\n"
        self._out = out
        self._jq = self._api.jq_init()
        self._inputs = self._api.jq_util_input_init(None, None)
        self._listeners = (Listener(self._on_debug), Listener(self._on_stderr))  # libjq does not keep them alive

    def run(self) -> int:
        self._api.onig_set_parse_depth_limit(MAX_NESTED_GROUPS)
        if not self._compile():
            return NO_FILTER
        self._open_inputs()
        last_result = NO_OUTPUT
        if "null-input" in self._switches:
            status = self._filter(self._api.jv_null())
        else:
            status, last_result = self._filter_inputs()
        if self._api.jq_util_input_errors(self._inputs):
            status = UNUSABLE
        if "exit-status" in self._switches:
            return abs(last_result if status == NO_OUTPUT else status)
        return max(status, OK)

    def _compile(self) -> bool:
        """Whether the filter is one. If not, libjq has said on stderr why."""
        options, api, string = self._options, self._api, self._library.string
        content, origin = os.fsencode(options.program), "."
        if "from-file" in self._switches:
            content = self._library.content(self._file("from-file", options.program))
            origin = os.path.dirname(options.program) or "."
            if b"\0" in content:
                raise BadUsage("program file contains NUL bytes")
        directories = [api.jq_realpath(string(path)) for path in options.library_path] or [string("~/.jq")]
        api.jq_set_attr(self._jq, string("JQ_LIBRARY_PATH"), self._library.array(directories))
        api.jq_set_attr(self._jq, string("PROGRAM_ORIGIN"), api.jq_realpath(string(origin)))
        return bool(api.jq_compile_args(self._jq, content, self._variables()))

    def _variables(self) -> Value:
        library = self._library
        named = library.object({name: self._value(*given) for name, given in self._options.named.items()})
        positional = library.array([self._value(*given) for given in self._options.positional])
        arguments = library.object({"positional": positional, "named": self._api.jv_copy(named)})
        variables: Value = self._api.jv_object_set(named, library.string("ARGS"), arguments)
        return variables

    def _value(self, option: str, text: str) -> Value:
        if option in ("arg", "args"):
            return self._library.string(text)
        if option in ("rawfile", "slurpfile"):
            return self._file(option, text)
        value: Value = self._api.jv_parse(os.fsencode(text))
        if self._api.jv_get_kind(value) == INVALID:
            raise BadUsage(f"invalid JSON text passed to --{option}")
        return value

    def _file(self, option: str, path: str) -> Value:
        value: Value = self._api.jv_load_file(os.fsencode(path), option != "slurpfile")
        if self._api.jv_get_kind(value) == INVALID:
            reason = os.fsdecode(self._text(self._api.jv_invalid_get_msg(value)))
            raise BadUsage(f"--{option} {path}: {reason}")
        return value

    def _open_inputs(self) -> None:
        api, switches = self._api, self._switches
        parser = None
        if "raw-input" not in switches:
            parser = api.jv_parser_new(STREAMING if "stream" in switches else 0)
        api.jq_util_input_set_parser(self._inputs, parser, "slurp" in switches)
        for file in self._options.files or ["-"]:
            api.jq_util_input_add_input(self._inputs, os.fsencode(file))
        api.jq_set_input_cb(self._jq, api.jq_util_input_next_input_cb, self._inputs)
        on_debug, on_stderr = self._listeners
        api.jq_set_debug_cb(self._jq, on_debug, None)
        api.jq_set_stderr_cb(self._jq, on_stderr, None)

    def _filter_inputs(self) -> tuple[int, int]:
        """How it went with the last input, and what the last result was."""
        status = last_result = NO_OUTPUT
        while not self._api.jq_util_input_errors(self._inputs) and not self._api.jq_halted(self._jq):
            value = self._api.jq_util_input_next_input(self._inputs)
            if self._api.jv_get_kind(value) == INVALID:
                reason = self._library.reason(value)
                if reason is not None:
                    self._say(b"jq: parse error: %s\n" % self._text(reason))
                    status = FAILED
                break
            status = self._filter(value)
            if status in (OK, NOT_TRUE):
                last_result = status
        return status, last_result

    def _filter(self, value: Value) -> int:
        status = NO_OUTPUT
        self._api.jq_start(self._jq, value, 0)
        while (kind := self._api.jv_get_kind(result := self._api.jq_next(self._jq))) != INVALID:
            status = NOT_TRUE if kind in (NULL, FALSE) else OK
            self._print(result, kind)
        if self._api.jq_halted(self._jq):
            return self._halted()
        reason = self._library.reason(result)
        return status if reason is None else self._failed(reason)

    def _print(self, result: Value, kind: int) -> None:
        if kind == STRING and self._is_raw and "ascii-output" not in self._switches:
            self._out.write(self._library.content(result))
        else:
            self._out.write(self._library.written(result, self._print_flags))
        self._out.write(self._line_end)
        if "unbuffered" in self._switches:
            self._out.flush()

    def _failed(self, reason: Value) -> int:
        remark = b"" if self._api.jv_get_kind(reason) == STRING else b" (not a string)"
        place = self._library.content(self._api.jq_util_input_get_position(self._jq))
        self._say(b"jq: error (at %s)%s: %s\n" % (place, remark, self._text(reason)))
        return FAILED

    def _halted(self) -> int:
        """`halt` has neither a status nor a message, `halt_error` has both."""
        message = self._api.jq_get_error_message(self._jq)
        kind = self._api.jv_get_kind(message)
        if kind not in (INVALID, NULL):
            self._say(self._text(message) + (b"" if kind == STRING else b"\n"))
        status = self._api.jq_get_exit_code(self._jq)
        kind = self._api.jv_get_kind(status)
        if kind == NUMBER and abs(number := self._api.jv_number_value(status)) < 1 << 31:
            return int(number)
        return OK if kind == INVALID else FAILED

    def _say(self, content: bytes) -> None:
        self._out.flush()  # what came before is also read before, where both go to one place
        _tell(content)

    def _on_debug(self, _: Any, value: Value) -> None:
        _tell(b'["DEBUG:",%s]\n' % self._library.written(value, self._print_flags & ~PRETTY))

    def _on_stderr(self, _: Any, value: Value) -> None:
        _tell(self._text(value))

    def _text(self, value: Value) -> bytes:
        """A string as it is, and anything else as JSON."""
        is_string = self._api.jv_get_kind(value) == STRING
        return self._library.content(value) if is_string else self._library.written(value)
