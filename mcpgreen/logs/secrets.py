"""What a log must not show: values whose names or schemas say that they are secret, and texts that carry such.

Names are looked at as people write them (`apiKey`, `API_KEY`, `x-api-key`). A value that is secret once is hidden
wherever it comes again, as in the output of a tool that repeats its arguments.

Rule: rather hide too much than too little, and look at no more than a bounded part of what others sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from mcpgreen.text import jsontext
from mcpgreen.text.json_pointers import pointed_at

HIDDEN = "[redacted]"
MAX_SCHEMA_NODES = 10_000
MAX_VALUE_NODES = 5_000  # ten milliseconds
MAX_REFERENCES = 8
MAX_DEPTH = 16
MAX_VALUES = 100
MAX_NAMES = 100
SHORTEST_VALUE = 4  # a shorter one would be found in any text
MAX_VALUE_CHARS = 4096
READ_CHARS = 16_384  # of one text
SHOWN_CHARS = 1024
MAX_SHOWN_BYTES = 4096

# Anywhere in a name, without its separators; and as a word of its own.
PARTS = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "authorization", "cookie"),
    *("apikey", "accesskey", "privatekey", "signingkey", "requeststate"),
)
WORDS = frozenset({"auth", "bearer", "jwt", "key", "keys", "otp", "pass", "pin", "pwd"})
HARMLESS = frozenset({"progresstoken"})
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# In a text: a header to the end of its line, a name with its value, a bearer's token, and who logs in to an address.
# All repeats but the last one of each have a bound, so that no text takes long.
HEADER = re.compile(r"(?i)((?:authorization|cookie)\\?[\"']?[ \t]{0,8}[:=][ \t]{0,8})[^\r\n]+")
NAMED = (
    r"(?i)((?:{names})[\w.-]{{0,64}}\\?[\"']?\s{{0,8}}[:=]\s{{0,8}})"
    r"(\\?\"(?:[^\"\\]|\\[^\"])*(?:\\?\")?|'[^']*'?|[^\s\"'&,;<>{{}}\[\]]+)"
)
ASSIGNED = re.compile(
    NAMED.format(
        names=r"password|passwd|passphrase|passcode|secret|token|credential|(?:api|access|private|signing)[_-]?key"
    )
)
BEARER = re.compile(r"(?i)\b(bearer\s{1,8})[\w.~+/=-]{8,}")
LOGIN = re.compile(r"(://[^/\s:@]{0,200}:)[^/\s@]{1,200}@")


def is_secret_name(name: str, value: Any = None) -> bool:
    """Whether what has this name is secret. A number of tokens is not."""
    words = [word.lower() for word in WORD.findall(name[:200])]
    joined = "".join(words)
    if joined in HARMLESS or (joined.endswith("tokens") and isinstance(value, (int, float))):
        return False
    return any(part in joined for part in PARTS) or not WORDS.isdisjoint(words)


class Secrets:
    """What is secret in one conversation: these names besides those that say it themselves, and these values. Where too
    much would have to be looked at to know them, every text is."""

    def __init__(self, names: Iterable[str] = (), values: Iterable[str] = (), *, hides_all: bool = False) -> None:
        self.names = frozenset(names)
        self.hides_all = hides_all
        found = {value[:MAX_VALUE_CHARS] for value in values if len(value) >= SHORTEST_VALUE}
        # As they are, and as they stand in JSON within a text; long ones first, which may have short ones in them.
        found |= {jsontext.dumps(value)[1:-1].decode("ascii") for value in found}
        self._values = sorted(found, key=len, reverse=True)[: 2 * MAX_VALUES]
        listed = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)[:MAX_NAMES]))
        self._named = re.compile(NAMED.format(names=listed)) if listed else None

    def with_values_in(self, value: Any) -> Secrets:
        """Those that stand in this value, too."""
        found = self._values_in(value)
        is_too_much = found is None or len(found) > MAX_VALUES
        return Secrets(self.names, [*self._values, *(found or ())], hides_all=self.hides_all or is_too_much)

    def with_those(self, others: Iterable[Secrets]) -> Secrets:
        """All that is secret to one of them."""
        together = [self, *others]
        names = {name for each in together for name in each.names}
        values = {value for each in together for value in each._values}
        return Secrets(names, values, hides_all=any(each.hides_all for each in together))

    def hides_in(self, members: dict[str, Any], name: str) -> bool:
        """Whether one of these members is secret: by its name, or as the value in {"name": "token", "value": ...}."""
        value = members[name]
        if value is None:
            return False
        if name == "value" and isinstance(members.get("name"), str):
            return members["name"] in self.names or is_secret_name(members["name"], value)
        return name in self.names or is_secret_name(name, value)

    def _values_in(self, value: Any) -> list[str] | None:
        """The texts and numbers in it that are secret; None if it is too large or too deep to tell."""
        found: list[str] = []
        level: list[tuple[Any, bool]] = [(value, False)]
        left_nodes = MAX_VALUE_NODES
        for _ in range(MAX_DEPTH):
            below: list[tuple[Any, bool]] = []
            for each, is_hidden in level:
                if isinstance(each, (dict, list)):
                    left_nodes -= len(each)
                    if left_nodes < 0:
                        return None
                if isinstance(each, dict):
                    below += [(member, is_hidden or self.hides_in(each, name)) for name, member in each.items()]
                elif isinstance(each, list):
                    below += [(member, is_hidden) for member in each]
                elif is_hidden and isinstance(each, (str, int, float)) and not isinstance(each, bool):
                    found.append(str(each))
            level = below
        return None if level else found

    def text(self, text: str) -> str:
        """A text without what is secret in it, at most `READ_CHARS` long."""
        if self.hides_all:
            return HIDDEN if text else ""
        is_cut = len(text) > READ_CHARS
        text = text[:READ_CHARS]
        for value in self._values:
            text = text.replace(value, HIDDEN)
        if is_cut and self._values:
            text = text[: -len(self._values[0])]  # where one of them may begin
        for pattern in (HEADER, ASSIGNED, *((self._named,) if self._named else ()), BEARER):
            text = pattern.sub(rf"\1{HIDDEN}", text)
        return LOGIN.sub(rf"\1{HIDDEN}@", text)

    def shown(self, value: Any) -> str:
        """A JSON value as one line of ASCII: what is secret is hidden, what is long is cut, with its size."""
        encoded = jsontext.dumps(_Copy(self).of(value)).decode("ascii")
        return encoded if len(encoded) <= MAX_SHOWN_BYTES else f"{encoded[:MAX_SHOWN_BYTES]}... ({len(encoded)} bytes)"


class _Copy:
    """A copy of a value that is fit to be shown, made until it is long enough."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._left_chars = MAX_SHOWN_BYTES

    def of(self, value: Any, depth: int = 0) -> Any:
        self._left_chars -= 2
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, (dict, list)):
            if depth >= MAX_DEPTH or self._left_chars <= 0:
                return f"... ({len(value)} members)" if value else value
            return self._members(value, depth) if isinstance(value, dict) else self._items(value, depth)
        # What ujson cannot write, infinity among it.
        is_odd = isinstance(value, (int, float)) and not abs(value) < 1 << 63
        return str(value)[:SHOWN_CHARS] if is_odd else value

    def _members(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for name, member in value.items():
            if self._left_chars <= 0:
                copy["..."] = f"{len(value) - len(copy)} more"
                break
            self._left_chars -= len(name)
            is_hidden = self._secrets.hides_in(value, name)
            copy[self._secrets.text(name)[:SHOWN_CHARS]] = HIDDEN if is_hidden else self.of(member, depth + 1)
        return copy

    def _items(self, value: list[Any], depth: int) -> list[Any]:
        copy: list[Any] = []
        for item in value:
            if self._left_chars <= 0:
                return [*copy, f"... ({len(value) - len(copy)} more)"]
            copy.append(self.of(item, depth + 1))
        return copy

    def _text(self, text: str, depth: int) -> str:
        shown = None
        if text[:1] in ("{", "[") and len(text) <= READ_CHARS and depth < MAX_DEPTH:
            # What a tool prints is often JSON, and comes as text too.
            try:
                value = jsontext.loads(text)
            except ValueError:
                pass
            else:
                shown = jsontext.dumps(_Copy(self._secrets).of(value, MAX_DEPTH // 2)).decode("ascii")
        if shown is None:
            shown = self._secrets.text(text)
        if len(text) > SHOWN_CHARS:
            shown = f"{shown[:SHOWN_CHARS]}... ({len(text.encode('utf-8', 'replace'))} bytes)"
        self._left_chars -= len(shown)
        return shown


def secret_names(schema: Any, *, whole: Iterable[str]) -> set[str]:
    """Names of the members that a schema declares as secret, at any depth; `whole` if it says so of the value itself,
    or of members whose names it does not know."""
    names: set[str] = set()
    if _is_secret(schema, schema):
        names.update(whole)
    for part in _parts(schema):
        members = part.get("properties")
        if isinstance(members, dict):
            names.update(name for name, member in members.items() if _is_secret(member, schema))
    return names


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    for _ in range(MAX_SCHEMA_NODES):
        if not waiting:
            return
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


IN_PLACE = ("additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "oneOf", "prefixItems", "then")


def _is_secret(part: Any, schema: Any, depth: int = 0) -> bool:
    """Whether a schema says so of its value, or of what it consists of apart from named members."""
    if isinstance(part, list):
        return any(_is_secret(each, schema, depth) for each in part)
    if not isinstance(part, dict) or depth > MAX_REFERENCES:
        return False
    if part.get("format") == "password" or part.get("writeOnly") is True:
        return True
    inner = [part[keyword] for keyword in IN_PLACE if keyword in part]
    patterned = part.get("patternProperties")
    if isinstance(patterned, dict):
        inner.extend(patterned.values())
    if isinstance(part.get("$ref"), str):
        with suppress(LookupError):
            inner.append(pointed_at(schema, part["$ref"]))
    return any(_is_secret(each, schema, depth + 1) for each in inner)
