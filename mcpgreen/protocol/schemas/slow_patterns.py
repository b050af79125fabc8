"""Find the patterns of a schema that may take a regular expression engine for ever."""

from __future__ import annotations

import re
import sys
from typing import Any

from mcpgreen.protocol.schemas.lint import parts_of, patterns_of

if sys.version_info >= (3, 11):
    from re import _constants as sre_constants
    from re import _parser as sre_parse
else:
    import sre_constants
    import sre_parse

MANY = 16  # repeats up to so many times do no harm
REPEATS = (sre_constants.MAX_REPEAT, sre_constants.MIN_REPEAT)


def slow_patterns_in(schema: Any) -> list[str]:
    """Its patterns that repeat something which is itself repeated: they may take a regular expression engine for ever.

    `^([a-z]+[._-]?)+@` looks harmless, and takes twice as long for each further letter of a text without an at sign:
    the repeats inside each other can share the letters out in any number of ways. Such a pattern is not wrong, and many
    values meet it quickly, so this is for a warning, and never a reason to refuse a schema.
    """
    patterns = (pattern for part in parts_of(schema) for pattern in patterns_of(part))
    return [pattern for pattern in dict.fromkeys(patterns) if _is_slow(pattern)]


def _is_slow(pattern: str) -> bool:
    try:
        return _repeats_repeats(sre_parse.parse(pattern), is_repeated=False)
    except (re.error, RecursionError, OverflowError):
        return False


def _repeats_repeats(part: Any, *, is_repeated: bool) -> bool:
    """Whether a part of a parsed pattern holds a repeat of its own while it is repeated."""
    if isinstance(part, sre_parse.SubPattern):
        part = part.data
    if isinstance(part, list):
        return any(_repeats_repeats(each, is_repeated=is_repeated) for each in part)
    if not isinstance(part, tuple):
        return False
    if part and part[0] in REPEATS:
        _, most, repeated = part[1]
        is_many = most is sre_constants.MAXREPEAT or most > MANY
        return (is_many and is_repeated) or _repeats_repeats(repeated, is_repeated=is_repeated or is_many)
    return any(_repeats_repeats(each, is_repeated=is_repeated) for each in part)
