"""Settings: the row type, the parsers, and how a value is found.

Each setting is declared once, as a `Setting` in `table`; loader, `doctor`, bounds and reference page read
the same rows. This module only merges mappings: who collects them (command line, environment, project file) and who
prints the notes is not its business.

Rule: a typo never stops the server. A value out of bounds is moved to the nearest bound, one that cannot be read is
replaced by the default, and both leave a note. An empty string counts as not set, except where a row takes it.

Imported before the first answer, hence plain classes and no `typing`, `re` or `dataclasses` at run time.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, NoReturn

    Parser = Callable[[str], Any]
    Sources = tuple[tuple[str, dict[str, str]], ...]  # how the origins in it begin, and the variables

OUR_PREFIX = "MCPGREEN_"
ALIAS_PREFIX = "MCPBASH_"
# Every variable that a row can name begins like this, so that one pass over the environment finds them all.
COMMON_PREFIX = "MCP"

_YES = ("true", "1", "yes", "on")
_NO = ("false", "0", "no", "off")


class Setting:
    """One row: what a setting is called, how it is read, what it may be and what it means."""

    __slots__ = ("default", "doc", "high", "low", "name", "parser", "secret", "takes_empty", "variables")

    def __init__(
        self,
        name: str,
        parser: Parser,
        default: Any,
        *,
        low: float | None = None,
        high: float | None = None,
        aliases: tuple[str, ...] = (),
        secret: bool = False,
        takes_empty: bool = False,
        doc: str = "",
    ) -> None:
        self.name = name
        self.parser = parser
        self.default = default
        self.low = low
        self.high = high
        self.secret = secret
        self.takes_empty = takes_empty
        self.doc = doc
        upper = name.upper()
        self.variables = (OUR_PREFIX + upper, ALIAS_PREFIX + upper, *aliases)  # strongest first

    @property
    def allowed(self) -> tuple[str, ...]:
        """The words of a `choice`; empty for everything else."""
        return self.parser.allowed if isinstance(self.parser, choice) else ()


class Settings:
    """The resolved values, as attributes. Frozen: a changed copy comes from `with_values`."""

    _values: dict[str, Any]
    _origins: dict[str, str]
    notes: tuple[str, ...]  # sentences for the operator: what was not taken as it was written

    def __init__(self, values: dict[str, Any], origins: dict[str, str], notes: Iterable[str] = ()) -> None:
        # Values live in __dict__, so that reading one costs no more than any attribute.
        self.__dict__.update(values, _values=values, _origins=origins, notes=tuple(notes))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"There is no setting {name!r}.")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("Settings are frozen; make a changed copy using with_values.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("Settings are frozen.")

    def __repr__(self) -> str:
        changed = [f"{name} from {origin}" for name, origin in self._origins.items() if origin != "default"]
        return f"<Settings: {', '.join(changed) or 'all defaults'}>"

    def origin(self, name: str) -> str:
        """Where the value came from: `flag`, a variable's name, `project file: NAME`, `default` or `code`."""
        if name not in self._origins:
            raise AttributeError(f"There is no setting {name!r}.")
        return self._origins[name]

    def with_values(self, **changes: Any) -> Settings:
        """A copy with these values as they are: neither parsed nor moved into bounds."""
        for name in changes:
            self.origin(name)
        return Settings({**self._values, **changes}, {**self._origins, **dict.fromkeys(changes, "code")}, self.notes)


def resolve(
    rows: Iterable[Setting],
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    project_env: Mapping[str, str],
    other_variables: Iterable[str] = (),
) -> Settings:
    """Find the value of every row: flag, then environment, then project file, then default.

    `flags` is keyed by setting name; None and False mean that the flag was not given. The other two are keyed by
    variable name, `MCPGREEN_*` being stronger than its aliases. `other_variables` are no settings and no typos either.
    """
    sources = (("", _ours(environ)), ("project file: ", _ours(project_env)))
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    notes: list[str] = []
    known = set(other_variables)
    for row in rows:
        known.add(row.variables[0])
        raw, origin = _find(row, flags.get(row.name), sources)
        values[row.name] = row.default
        origins[row.name] = "default"
        if raw is None:
            continue
        try:
            parsed = row.parser(raw)
        except ValueError as error:
            notes.append(_unreadable(row, raw, origin, str(error)))
            continue
        values[row.name], note = _within_bounds(row, parsed, origin)
        origins[row.name] = origin
        if note:
            notes.append(note)
    return Settings(values, origins, [*notes, *_unknown_names(sources, known)])


def integer(raw: str) -> int:
    sign_free = raw[1:] if raw[:1] in ("+", "-") else raw
    if not (sign_free.isascii() and sign_free.isdigit()):
        raise ValueError("is not a whole number")
    try:
        return int(raw)
    except ValueError:  # Python refuses to convert thousands of digits
        raise ValueError("has too many digits") from None


def seconds(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ValueError("is not a number of seconds")
    return value


def names(raw: str) -> tuple[str, ...]:
    """Words separated by spaces or commas."""
    return tuple(raw.replace(",", " ").split())


def addresses(raw: str) -> tuple[str, ...]:
    """IP addresses separated by spaces or commas."""
    from ipaddress import ip_address

    try:
        return tuple(str(ip_address(word)) for word in names(raw))
    except ValueError:
        raise ValueError("is not a list of IP addresses") from None


def permission(raw: str) -> str:
    """allow or deny. A typo must not open a door."""
    return "allow" if raw.strip().lower() in ("allow", "all") else "deny"


def flag(raw: str) -> bool:
    word = raw.lower()
    if word not in _YES + _NO:
        raise ValueError("is neither true nor false")
    return word in _YES


text = str  # as it is


def directory(raw: str) -> str:
    """A path, with `~` resolved. Whether it exists is for the reader of the setting to find out."""
    if "\0" in raw:
        raise ValueError("is not a path")
    return os.path.expanduser(raw)


class choice:
    """A parser for one of these words, whatever its case. `synonyms` are understood too, but not advertised."""

    def __init__(self, *allowed: str, synonyms: Mapping[str, str] | None = None) -> None:
        self.allowed = allowed
        self._synonyms = synonyms or {}

    def __call__(self, raw: str) -> str:
        word = self._synonyms.get(raw.lower(), raw.lower())
        if word not in self.allowed:
            raise ValueError(f"is not one of {', '.join(self.allowed)}")
        return word


def _ours(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: variables[name] for name in variables if name.startswith(COMMON_PREFIX)}


def _find(row: Setting, given: Any, sources: Sources) -> tuple[str | None, str]:
    if given is not None and given is not False and str(given).strip():
        return str(given).strip(), "flag"
    for prefix, variables in sources:
        if not variables:
            continue
        for name in row.variables:
            raw = variables.get(name, "").strip()
            if raw or (row.takes_empty and name in variables):
                return raw, prefix + name
    return None, "default"


def _within_bounds(row: Setting, value: Any, origin: str) -> tuple[Any, str]:
    if row.low is not None and value < row.low:
        return type(value)(row.low), f"{_title(row, origin)} is {value}, less than the minimum; using {row.low}."
    if row.high is not None and value > row.high:
        return type(value)(row.high), f"{_title(row, origin)} is {value}, more than the maximum; using {row.high}."
    return value, ""


def _unreadable(row: Setting, raw: str, origin: str, reason: str) -> str:
    shown = "its value" if row.secret else repr(raw if len(raw) <= 40 else raw[:40] + "…")
    instead = f"using {row.default}" if row.default not in ("", ()) else "as if it were not set"
    return f"{_title(row, origin)}: {shown} {reason}; {instead}."


def _title(row: Setting, origin: str) -> str:
    return f"--{row.name.replace('_', '-')}" if origin == "flag" else origin


def _unknown_names(sources: Sources, known: set[str]) -> Iterator[str]:
    for prefix, variables in sources:
        for name in variables:
            bare = name.removeprefix(OUR_PREFIX)
            # Tools get whatever concerns them under both prefixes, and a tool may start a server of its own.
            if bare == name or name in known or ALIAS_PREFIX + bare in variables:
                continue
            from difflib import get_close_matches

            # Without the prefix: what all names share would make any two of them look alike.
            candidates = sorted(each.removeprefix(OUR_PREFIX) for each in known)
            nearest = get_close_matches(bare, candidates, n=1, cutoff=0.7)
            hint = f"; did you mean {OUR_PREFIX}{nearest[0]}?" if nearest else "."
            yield f"{prefix}{name} is not a setting{hint}"
