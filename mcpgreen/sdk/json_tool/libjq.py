"""libjq: where it is, and the functions of jq.h and jv.h that a command needs.

It comes with the PyPI package `jq`, whose extension module is all of libjq with a layer for Python on top. That layer
takes one text and gives Python values, and what a command must keep is lost on the way: `input`, `halt`, `debug`, where
an error was, the digits of large numbers. So the module is not imported, but opened as the library that it also is.

Rule of jv.h: a function takes over the values that it is given. Only `jv_get_kind`, `jv_number_value` and
`jv_string_value` leave them to you.
"""

from __future__ import annotations

import _imp
import os
import sys
from ctypes import CDLL, CFUNCTYPE, Structure, c_char_p, c_double, c_int, c_uint64, c_void_p, string_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

INVALID, NULL, FALSE, TRUE, NUMBER, STRING = range(6)
# How values are written; a space of indentation counts 256, and there may be seven.
PRETTY, ASCII, COLOURED, SORTED, TAB, SPACE = 1, 2, 4, 8, 64, 256
STREAMING = 2  # how values are read


class Value(Structure):
    """A `jv`: sixteen bytes that only libjq understands."""

    _fields_ = (("kind_and_size", c_uint64), ("number_or_pointer", c_uint64))


Listener = CFUNCTYPE(None, c_void_p, Value)

# What a function gives, and then what it takes.
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "jq_init": (c_void_p,),
    "jq_set_attr": (None, c_void_p, Value, Value),
    "jq_compile_args": (c_int, c_void_p, c_char_p, Value),
    "jq_set_input_cb": (None, c_void_p, c_void_p, c_void_p),
    "jq_set_debug_cb": (None, c_void_p, Listener, c_void_p),
    "jq_set_stderr_cb": (None, c_void_p, Listener, c_void_p),
    "jq_start": (None, c_void_p, Value, c_int),
    "jq_next": (Value, c_void_p),
    "jq_halted": (c_int, c_void_p),
    "jq_get_exit_code": (Value, c_void_p),
    "jq_get_error_message": (Value, c_void_p),
    "jq_realpath": (Value, Value),
    "jq_util_input_init": (c_void_p, c_void_p, c_void_p),
    "jq_util_input_add_input": (None, c_void_p, c_char_p),
    "jq_util_input_set_parser": (None, c_void_p, c_void_p, c_int),
    "jq_util_input_next_input": (Value, c_void_p),
    "jq_util_input_errors": (c_int, c_void_p),
    "jq_util_input_get_position": (Value, c_void_p),
    "jv_parser_new": (c_void_p, c_int),
    "jv_parse": (Value, c_char_p),
    "jv_load_file": (Value, c_char_p, c_int),
    "jv_dump_string": (Value, Value, c_int),
    "jv_copy": (Value, Value),
    "jv_free": (None, Value),
    "jv_get_kind": (c_int, Value),
    "jv_invalid_has_msg": (c_int, Value),
    "jv_invalid_get_msg": (Value, Value),
    "jv_null": (Value,),
    "jv_number_value": (c_double, Value),
    "jv_string_sized": (Value, c_char_p, c_int),
    "jv_string_value": (c_void_p, Value),
    "jv_string_length_bytes": (c_int, Value),
    "jv_array": (Value,),
    "jv_array_append": (Value, Value, Value),
    "jv_object": (Value,),
    "jv_object_set": (Value, Value, Value, Value),
    "onig_set_parse_depth_limit": (c_int, c_int),
}


class NoLibrary(Exception):
    """This Python does not have the package, or not as we know it. The text says why."""


class LibJq:
    """The library. Its functions are called by their own names on `api`."""

    def __init__(self) -> None:
        path = _path()
        if path is None:
            raise NoLibrary("it is not installed")
        try:
            self.api: Any = CDLL(path)
            for name, (result, *parameters) in PROTOTYPES.items():
                function = getattr(self.api, name)
                function.restype, function.argtypes = result, parameters
        except (OSError, AttributeError) as error:
            raise NoLibrary(str(error)) from None

    def string(self, text: str) -> Value:
        content = os.fsencode(text)
        value: Value = self.api.jv_string_sized(content, len(content))
        return value

    def array(self, values: Iterable[Value]) -> Value:
        array: Value = self.api.jv_array()
        for value in values:
            array = self.api.jv_array_append(array, value)
        return array

    def object(self, members: dict[str, Value]) -> Value:
        built: Value = self.api.jv_object()
        for name, value in members.items():
            built = self.api.jv_object_set(built, self.string(name), value)
        return built

    def written(self, value: Value, flags: int = 0) -> bytes:
        """The value as JSON."""
        return self.content(self.api.jv_dump_string(value, flags))

    def content(self, string: Value) -> bytes:
        """What is in a string."""
        length = self.api.jv_string_length_bytes(self.api.jv_copy(string))
        content = string_at(self.api.jv_string_value(string), length)
        self.api.jv_free(string)
        return content

    def reason(self, invalid: Value) -> Value | None:
        """What an invalid value says has failed. None: nothing has, this is just the end."""
        has_reason = self.api.jv_invalid_has_msg(self.api.jv_copy(invalid))
        return self.api.jv_invalid_get_msg(invalid) if has_reason else None


def _path() -> str | None:
    """Where the package has its module. Asking `site` would cost more than all of the rest, so it is asked last."""
    version = "python{}.{}".format(*sys.version_info)
    beside_us = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    of_this_python = os.path.join(os.path.dirname(sys.executable), "..", "lib", version, "site-packages")
    found = _module_in((beside_us, of_this_python))
    if found is None:
        import site

        site.main()
        found = _module_in(sys.path)
    return found


def _module_in(places: Iterable[str]) -> str | None:
    paths = (os.path.join(place, f"jq{ending}") for place in places for ending in _imp.extension_suffixes())
    return next(filter(os.path.isfile, paths), None)
