"""Dates of the small jq: seconds since 1970, texts, and times that are taken apart. All of it is UTC.

A time that is taken apart is an array: year, month (from 0), day, hours, minutes, seconds, and the days of the week and
of the year (from 0).
"""

from __future__ import annotations

import math
import re

from .values import FilterError, kind_of, number, shown, wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from time import struct_time
    from typing import Any

# What C reads and Python does not, and what C writes otherwise.
READ_AS = {"%T": "%H:%M:%S", "%F": "%Y-%m-%d", "%R": "%H:%M", "%D": "%m/%d/%y", "%e": "%d", "%h": "%b"}
WRITTEN_AS = {"%Z": "UTC"}


def _at(secs: Any) -> struct_time:
    from time import gmtime

    try:
        return gmtime(math.floor(secs))
    except (ValueError, OverflowError, OSError):
        raise FilterError(f"{shown(secs)} is beyond all dates") from None


def _apart(moment: struct_time, fraction: float = 0) -> list[Any]:
    date = [moment.tm_year, moment.tm_mon - 1, moment.tm_mday]
    days = [(moment.tm_wday + 1) % 7, moment.tm_yday - 1]
    return [*date, moment.tm_hour, moment.tm_min, number(moment.tm_sec + fraction), *days]


def _gmtime(value: Any) -> list[Any]:
    moment = _at(wanted("gmtime", "number", value))
    return _apart(moment, value - math.floor(value))


def _mktime(value: Any, asked_by: str = "mktime") -> int:
    from calendar import timegm

    if kind_of(value) != "array" or len(value) < 6 or any(kind_of(each) != "number" for each in value):
        raise FilterError(f"{asked_by} requires parsed datetime inputs")
    year, month, day, hours, minutes, secs = (math.floor(each) for each in value[:6])
    return timegm((year + month // 12, month % 12 + 1, day, hours, minutes, secs))


def _strftime(value: Any, form: Any) -> str:
    from time import strftime

    secs = value if kind_of(value) == "number" else _mktime(value, "strftime/1")
    return strftime(_replaced(wanted("strftime", "string", form), WRITTEN_AS), _at(secs))


def _strptime(value: Any, form: Any) -> list[Any]:
    from time import strptime

    if kind_of(value) != "string" or kind_of(form) != "string":
        raise FilterError("strptime/1 requires string inputs and arguments")
    try:
        return _apart(strptime(value, _replaced(form, READ_AS)))
    except ValueError:
        raise FilterError(f'date "{value}" does not match format "{form}"') from None


def _replaced(form: str, others: dict[str, str]) -> str:
    return re.sub("%.", lambda found: others.get(found[0], found[0]), form)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gmtime/0": _gmtime,
    "mktime/0": _mktime,
    "strftime/1": _strftime,
    "strptime/1": _strptime,
}
