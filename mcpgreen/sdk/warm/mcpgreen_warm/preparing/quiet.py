"""What modules and compilers say is not for the scripts that are forked later."""

from __future__ import annotations

import io
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class quietly:
    """Nothing of it is heard. It is in the list that is given, at the end."""

    def __enter__(self) -> list[Any]:
        self._streams = sys.stdout, sys.stderr
        self._filters: Any = warnings.filters
        self._kept = self._filters[:]
        sys.stdout = sys.stderr = self._output = io.StringIO()
        self._warnings = warnings.catch_warnings(record=True)
        self._said: Any = self._warnings.__enter__()
        warnings.filters = self._filters  # no other list: the interpreter goes by the last one that it saw
        warnings.simplefilter("always")
        said: list[Any] = self._said
        return said

    def __exit__(self, *_: object) -> None:
        self._warnings.__exit__(None, None, None)
        self._filters[:] = self._kept
        sys.stdout, sys.stderr = self._streams
        if self._output.getvalue():
            self._said.append(self._output.getvalue())
