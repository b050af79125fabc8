"""What is printed while a function runs."""

from __future__ import annotations

import os
import sys


class Printed:
    """Kept aside until it is known what it is; of a function that returns nothing, it goes out at once."""

    def __init__(self, *, is_result: bool) -> None:
        self.is_result = is_result
        self._stdout = -1
        if is_result:
            return
        # Without a flush: what has been printed so far is no part of the result either.
        self._stdout = os.dup(1)
        self._aside = _unnamed_file()
        os.dup2(self._aside, 1)

    def restore(self) -> None:
        if self._stdout < 0:
            return
        try:
            sys.stdout.flush()
        finally:
            os.dup2(self._stdout, 1)
            os.close(self._stdout)
            self._stdout = -1
        os.lseek(self._aside, 0, os.SEEK_SET)
        target = 1 if self.is_result else 2
        while chunk := os.read(self._aside, 65536):
            while chunk:
                chunk = chunk[os.write(target, chunk) :]
        os.close(self._aside)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("printed")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        return os.dup(file.fileno())
