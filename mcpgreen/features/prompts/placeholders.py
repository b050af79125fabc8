"""Put arguments into a template: `{{name}}` and, unless it says otherwise, `${name}`, each replaced literally, once.

What an argument says is never looked at again, so a value that contains a placeholder stays as it is; nothing is ever
evaluated. A placeholder that no argument answers stays in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mcpgreen.errors import OutputTooLarge

# Any name may be an argument's. Up to the next brace, so that each character is looked at once.
IN_BRACES = re.compile(r"\{\{([^{}]+)\}\}()")
IN_BRACES_OR_AFTER_DOLLAR = re.compile(r"\{\{([^{}]+)\}\}|\$\{([^{}]+)\}")


class Filling:
    """The values for a template, and how many characters of them may be put in altogether: a template that names a
    long one a thousand times is short."""

    def __init__(self, values: Mapping[str, str], *, limit_chars: int, has_dollars: bool = True) -> None:
        self._values = values
        self._placeholder = IN_BRACES_OR_AFTER_DOLLAR if has_dollars else IN_BRACES
        self._limit_chars = limit_chars
        self._used_chars = 0

    def fill(self, template: str) -> str:
        """Raises OutputTooLarge."""
        return self._placeholder.sub(self._value_for, template)

    def fill_all(self, value: Any) -> Any:
        """The same in every text of a JSON value; names of members are left alone."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(each) for each in value]
        if isinstance(value, dict):
            return {key: self.fill_all(each) for key, each in value.items()}
        return value

    def _value_for(self, match: re.Match[str]) -> str:
        in_braces, after_dollar = match.groups("")
        value = self._values.get(in_braces.strip() or after_dollar, match[0])
        self._used_chars += len(value)
        if self._used_chars > self._limit_chars:
            raise OutputTooLarge(f"With these arguments the prompt is longer than {self._limit_chars} characters")
        return value
