"""The trace that a request belongs to (W3C Trace Context and Baggage), as variables of its script.

`traceparent`, `tracestate` and `baggage` in `_meta` of a request become TRACEPARENT, TRACESTATE and BAGGAGE, the names
under which tracing tools look for them. A script hands them on unread, so what is malformed is not passed on at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MAX_STATE_CHARS = 512
MAX_STATES = 32
MAX_BAGGAGE_CHARS = 8192

# Version, trace, span and flags. Zeros alone name nothing, and version ff does not exist.
_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR = rf"{_TOKEN}[ \t]*=[ \t]*[!#-+\--:<-\[\]-~]*"
_ITEM = re.compile(rf"{_PAIR}(?:[ \t]*;[ \t]*(?:{_PAIR}|{_TOKEN}))*")


def variables(meta: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    parent, state, baggage = (meta.get(key) for key in ("traceparent", "tracestate", "baggage"))
    if isinstance(parent, str) and _PARENT.fullmatch(parent):
        found["TRACEPARENT"] = parent
        if isinstance(state, str) and len(state) <= MAX_STATE_CHARS and _are_all(_STATE, state, at_most=MAX_STATES):
            found["TRACESTATE"] = state
    if isinstance(baggage, str) and len(baggage) <= MAX_BAGGAGE_CHARS and _are_all(_ITEM, baggage):
        found["BAGGAGE"] = baggage
    return found


def _are_all(pattern: re.Pattern[str], text: str, *, at_most: int = MAX_BAGGAGE_CHARS) -> bool:
    members = [member.strip(" \t") for member in text.split(",")]
    return len(members) <= at_most and all(map(pattern.fullmatch, members))
