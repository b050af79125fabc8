"""Regular expressions that are compiled when they are first used, for modules on the way to the first list.

`re` takes 4 ms to import and each pattern a part of one to compile, and most projects need none of them. Type checkers
see `re.compile`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as pattern
    from typing import Any
else:

    class pattern:  # it stands for the function
        """What `re.compile` would give."""

        def __init__(self, text: str | bytes) -> None:
            self._text = text

        def __getattr__(self, name: str) -> Any:
            import re

            value = getattr(re.compile(self._text), name)
            setattr(self, name, value)  # `re` keeps the compiled one
            return value


__all__ = ["pattern"]
