"""Put arguments into a template: `{{name}}` and `${name}`, each replaced literally, once.

What an argument says is never looked at again, so a value that contains a placeholder stays as it is; nothing is ever
evaluated. A placeholder that no argument answers stays in the text.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any


def fill(template: str, values: Mapping[str, str]) -> str:
    if "{" not in template:
        return template
    return str(_pattern().sub(lambda match: values.get(_name_in(match), match.group(0)), template))


def fill_all(value: Any, values: Mapping[str, str]) -> Any:
    """The same in every text of a JSON value; names of members are left alone."""
    if isinstance(value, str):
        return fill(value, values)
    if isinstance(value, list):
        return [fill_all(each, values) for each in value]
    if isinstance(value, dict):
        return {key: fill_all(each, values) for key, each in value.items()}
    return value


def _name_in(match: Any) -> str:
    in_braces, after_dollar = match.groups("")
    return str(in_braces.strip() or after_dollar)


@functools.cache
def _pattern() -> Any:
    import re

    # Any name may be an argument's. Up to the next brace, so that each character is looked at once.
    return re.compile(r"\{\{([^{}]+)\}\}|\$\{([^{}]+)\}")
