"""What a spare is to become, and the environment of that."""

from __future__ import annotations

import ctypes
import os
from os import environ
from struct import Struct, calcsize, pack

# What `os.environ` has, as bytes; to set one variable after the other there would take ten times as long.
values: dict[bytes, bytes] = vars(environ)["_data"]
place = ctypes.c_void_p.in_dll(ctypes.PyDLL(None), "environ")
TEXT_OFFSET = bytes.__basicsize__ - 1  # from the address of a bytes object to that of what it holds
POINTER_BYTES = calcsize("P")
MAX_MORE = 250  # variables that a call adds to the usual ones
put_pointer = Struct("P").pack_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Job:
    """A start afresh. Its variables are those that are not as usual, in the form NAME=VALUE; a NAME alone is one that
    is not there."""

    def __init__(self, words: bytes, variables: list[bytes]) -> None:
        self.command = [os.fsdecode(word) for word in words.split(b"\0")]
        self._variables = variables

    def applied_to(self, variables: dict[bytes, bytes]) -> dict[bytes, bytes]:
        for entry in self._variables:
            name, sign, value = entry.partition(b"=")
            if sign:
                variables[name] = value
            else:
                variables.pop(name, None)
        return variables


class Environment:
    """That of a call, as it usually is. A job changes it, and few pages by it: C sees pointers into the job."""

    def __init__(self, usual: dict[bytes, bytes]) -> None:
        """`usual` are variables that most calls have."""
        self.usual = usual
        self._own = dict(values)
        self._own_place = place.value

    def put_on(self, *, sdk: Any = None) -> None:
        """From now on this process has it, as it is after an import of the SDK, if there is one."""
        values.update(self.usual)
        self._put_into_c()
        if sdk is not None:
            sdk._leave_path()
            self._put_into_c()  # without a gap where a variable was

    def take_off(self) -> None:
        values.clear()
        values.update(self._own)
        place.value = self._own_place

    def become(self, variables: list[bytes]) -> None:
        """As those of a `Job`."""
        self._variables = variables  # C looks into it
        block, places = self._block, self._places
        end = POINTER_BYTES * len(places)
        absent = []
        for entry in variables:
            name, sign, value = entry.partition(b"=")
            if not sign:
                absent.append(name)
                continue
            at = places.get(name, end)
            if at < self._last_place:
                put_pointer(block, at, id(entry) + TEXT_OFFSET)
                if at == end:
                    end += POINTER_BYTES
            else:
                os.putenv(name, value)
            values[name] = value
        for name in absent:  # which may move the others
            os.environb.pop(name, None)

    def _put_into_c(self) -> None:
        self._entries = {name: name + b"=" + value for name, value in values.items()}
        self._places = {name: POINTER_BYTES * index for index, name in enumerate(self._entries)}
        self._last_place = POINTER_BYTES * (len(self._entries) + MAX_MORE)
        self._block = ctypes.create_string_buffer(self._last_place + POINTER_BYTES)
        pointers = pack(f"{len(self._entries)}P", *[id(entry) + TEXT_OFFSET for entry in self._entries.values()])
        ctypes.memmove(self._block, pointers, len(pointers))
        place.value = ctypes.addressof(self._block)
