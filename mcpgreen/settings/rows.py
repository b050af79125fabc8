"""How a setting is declared, read and found.

A setting is one attribute of a class derived from `Values`, declared with `setting`; `settings` has all of ours. The
type of the attribute follows from its parser, so mypy knows the type of every setting and refuses a misspelt one.
Callers collect the variables and flags, and print the notes.

Rule: a typo never stops the server. A value out of bounds is moved to the nearest bound, an unreadable value is
replaced by the default, and both leave a note, as does a variable that was a setting once. An empty string is not set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

T = TypeVar("T")
V = TypeVar("V", bound="Values")
Sources = tuple[tuple[str, Mapping[str, str]], ...]  # how the origins in it begin, and the variables

OUR_PREFIX = "MCPGREEN_"
ALIAS_PREFIX = "MCPBASH_"
# Every variable that a row can name begins like this, so that one pass over the environment finds them all.
COMMON_PREFIX = "MCP"

_YES = ("true", "1", "yes", "on")
_NO = ("false", "0", "no", "off")


class Switch(NamedTuple):
    """A flag that stands for one value of a setting, and is stronger than the setting's own variables."""

    name: str
    when: bool  # the value of the flag that counts; with the other one it says nothing
    value: str

    @property
    def variables(self) -> tuple[str, str]:
        return _variables(self.name)


class Row(NamedTuple):
    """One row of the table: how a setting is read, what it may be, what it means, and its names."""

    parser: Callable[[str], Any]
    default: Any
    low: float | None = None
    high: float | None = None
    aliases: tuple[str, ...] = ()
    switches: tuple[Switch, ...] = ()
    secret: bool = False
    doc: str = ""
    name: str = ""  # of the attribute that it is declared as

    @property
    def variables(self) -> tuple[str, ...]:
        """Its own variables, strongest first."""
        return (*_variables(self.name), *self.aliases)

    @property
    def all_variables(self) -> tuple[str, ...]:
        """Its own variables, and those of its switches."""
        return (*self.variables, *(name for switch in self.switches for name in switch.variables))

    @property
    def allowed(self) -> tuple[str, ...]:
        """The words of a `choice`; empty for every other parser."""
        return self.parser.allowed if isinstance(self.parser, choice) else ()


def setting(parser: Callable[[str], T], default: T, **options: Any) -> T:
    """Declare a setting in the body of a class. The class holds its row, an instance holds its value."""
    return cast(T, Row(parser, default, **options))


class Values:
    """The values of some settings, as attributes. Frozen: `with_values` makes a changed copy."""

    _origins: dict[str, str]
    notes: tuple[str, ...]  # sentences for the operator: what was not taken as it was written

    def __init__(self, values: Mapping[str, Any], origins: dict[str, str], notes: Iterable[str] = ()) -> None:
        # Values live in __dict__, so that reading one costs no more than any attribute.
        self.__dict__.update(values, _origins=origins, notes=tuple(notes))

    def __setattr__(self, name: str, value: object = None) -> NoReturn:
        raise AttributeError("Settings are frozen; make a changed copy using with_values.")

    __delattr__ = __setattr__

    def __repr__(self) -> str:
        changed = [f"{name} from {origin}" for name, origin in self._origins.items() if origin != "default"]
        return f"<Settings: {', '.join(changed) or 'all defaults'}>"

    def origin(self, name: str) -> str:
        """Return where the value came from: `flag`, a variable's name, `project file: NAME`, `default` or `code`."""
        if name not in self._origins:
            raise AttributeError(f"There is no setting {name!r}.")
        return self._origins[name]

    def with_values(self: V, **changes: object) -> V:
        """Return a copy with these values as they are: neither parsed nor moved into bounds."""
        for name in changes:
            self.origin(name)
        values = {name: getattr(self, name) for name in self._origins}
        return type(self)(values | changes, self._origins | dict.fromkeys(changes, "code"), self.notes)


def rows_of(table: type[Values]) -> tuple[Row, ...]:
    """Return the rows of a class and of its base classes, in the order of their declaration."""
    bases = [row for base in table.__bases__ if issubclass(base, Values) for row in rows_of(base)]
    return (*bases, *(row._replace(name=name) for name, row in vars(table).items() if isinstance(row, Row)))


def resolve(
    table: type[V],
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    project_env: Mapping[str, str],
    *,
    others: Iterable[str] = (),
    former: Container[str] = (),
) -> V:
    """Find the value of every row of a table: flag, then environment, then project file, then default.

    `flags` is keyed by setting name; None and False mean that the flag was not given. The other two are keyed by
    variable name, `MCPGREEN_*` being stronger than its aliases. `others` are variables that are neither settings
    nor typos; `former` are the names of settings that are gone.
    """
    sources = tuple(
        (prefix, {name: given[name] for name in given if name.startswith(COMMON_PREFIX)})
        for prefix, given in (("", environ), ("project file: ", project_env))
    )
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    notes: list[str] = []
    known = set(others)
    for row in rows_of(table):
        known.update(row.all_variables)
        values[row.name] = row.default
        origins[row.name] = "default"
        given = str(flags.get(row.name) or "").strip()
        found = _switched(row, sources, notes) or ((given, "flag") if given else _first_set(row.variables, sources))
        if found is None:
            continue
        raw, origin = found
        title = f"--{row.name.replace('_', '-')}" if origin == "flag" else origin
        try:
            values[row.name] = _within_bounds(row, row.parser(raw), title, notes)
            origins[row.name] = origin
        except ValueError as error:
            shown = "its value" if row.secret else _shown(raw)
            instead = f"using {row.default}" if row.default not in ("", ()) else "it is ignored"
            notes.append(f"{title}: {shown} {error}; {instead}.")
    notes += _notes_on_names(sources, known, former)
    return table(values, origins, dict.fromkeys(notes))


def integer(raw: str) -> int:
    digits = raw[1:] if raw[:1] in ("+", "-") else raw
    if not (digits.isascii() and digits.isdigit()):
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
    """allow or deny. Any other word denies: a typo must not allow anything."""
    return "allow" if raw.strip().lower() in ("allow", "all") else "deny"


def flag(raw: str) -> bool:
    word = raw.lower()
    if word not in _YES + _NO:
        raise ValueError("is neither true nor false")
    return word in _YES


text = str  # as it is


def directory(raw: str) -> str:
    """Parse a path, with `~` expanded. It need not exist."""
    if "\0" in raw:
        raise ValueError("is not a path")
    return os.path.expanduser(raw)


class choice:
    """A parser for one of these words, in any case. `synonyms` are accepted, but not documented."""

    def __init__(self, *allowed: str, synonyms: Mapping[str, str] | None = None) -> None:
        self.allowed = allowed
        self._synonyms = synonyms or {}

    def __call__(self, raw: str) -> str:
        word = self._synonyms.get(raw.lower(), raw.lower())
        if word not in self.allowed:
            raise ValueError(f"is not one of {', '.join(self.allowed)}")
        return word


def _variables(name: str) -> tuple[str, str]:
    return OUR_PREFIX + name.upper(), ALIAS_PREFIX + name.upper()


def _first_set(names: tuple[str, ...], sources: Sources) -> tuple[str, str] | None:
    """Return the first of these variables that is not empty: its value, and where it is."""
    for prefix, variables in sources:
        for name in names if variables else ():
            raw = variables.get(name, "").strip()
            if raw:
                return raw, prefix + name
    return None


def _switched(row: Row, sources: Sources, notes: list[str]) -> tuple[str, str] | None:
    """Return the value that a switch stands for, and the variable of the switch. Adds a note if it cannot be read."""
    for switch in row.switches:
        raw, origin = _first_set(switch.variables, sources) or ("", "")
        try:
            if raw and flag(raw) == switch.when:
                return switch.value, origin
        except ValueError as error:
            notes.append(f"{origin}: {_shown(raw)} {error}; the variable is ignored.")
    return None


def _within_bounds(row: Row, value: Any, title: str, notes: list[str]) -> Any:
    if row.low is not None and value < row.low:
        bound, problem = row.low, "less than the minimum"
    elif row.high is not None and value > row.high:
        bound, problem = row.high, "more than the maximum"
    else:
        return value
    notes.append(f"{title} is {value}, {problem}; using {bound}.")
    return type(value)(bound)


def _shown(raw: str) -> str:
    return repr(raw if len(raw) <= 40 else raw[:40] + "…")


def _notes_on_names(sources: Sources, known: set[str], former: Container[str]) -> Iterator[str]:
    """Yield notes on variables that were settings once, or only look like settings."""
    for prefix, variables in sources:
        for name in variables:
            bare = name.removeprefix(OUR_PREFIX)
            if bare.removeprefix(ALIAS_PREFIX).lower() in former:
                yield f"{prefix}{name} is no longer a setting; it has no effect."
            # Tools get their variables with both prefixes, and a tool may start a server of its own.
            elif bare != name and name not in known and ALIAS_PREFIX + bare not in variables:
                from difflib import get_close_matches

                # Without the prefix, which would make any two names look similar.
                candidates = sorted(each.removeprefix(OUR_PREFIX) for each in known if each.startswith(OUR_PREFIX))
                nearest = get_close_matches(bare, candidates, n=1, cutoff=0.7)
                hint = f"; did you mean {OUR_PREFIX}{nearest[0]}?" if nearest else "."
                yield f"{prefix}{name} is not a setting{hint}"
