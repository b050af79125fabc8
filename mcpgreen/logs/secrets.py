"""Hide secrets in log output: values that their names or schemas mark as secret, even inside text.

A name may be written in any of the usual ways (`apiKey`, `API_KEY`, `x-api-key`). A value that was secret once is
hidden wherever it appears again, as in the output of a tool that repeats its arguments.

Rule: hide too much rather than too little, and look at no more than a bounded part of what a client or script sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import islice

from mcpgreen.text import jsontext
from mcpgreen.text.json_pointers import pointed_at
from mcpgreen.text.json_types import Json

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

# PARTS make a name secret wherever they stand in it, without its separators; WORDS only as words of their own.
PARTS = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "authorization", "cookie"),
    *("apikey", "accesskey", "privatekey", "signingkey", "requeststate"),
)
WORDS = frozenset({"auth", "bearer", "jwt", "key", "keys", "otp", "pass", "pin", "pwd"})
HARMLESS = frozenset({"progresstoken", "PWD", "OLDPWD"})
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# Secrets in a text: a header to the end of its line, a name with its value, a login in a URL, what looks like a key.
# All repeats but the last one of each are bounded, so that no text takes long.
HEADER = re.compile(r"(?i)((?:authorization|cookie)\\?[\"']?[ \t]{0,8}[:=][ \t]{0,8})[^\r\n]+")
VALUE = (
    r"([\[({]|(?:[bru]{1,2}(?=[\"']))?(?:\\\"(?:[^\"\\]|\\[^\"])*(?:\\?\")?|\"(?:[^\"\\]|\\[\s\S])*\"?"
    r"|'(?:[^'\\]|\\[\s\S])*'?|[^\s\"'&,;<>{}\[\]]+))"
)
NAMES = r"password|passwd|passphrase|passcode|secret|token|credential|(?:api|access|private|signing)[_-]?key"
NAMES += r"|(?:(?-i:[Pp]wd)|(?<=_)pwd)(?!\w)"  # not PWD, the directory
# What a shell says about ${KEY:?set KEY first}: the first words of a sentence, and no key.
SENTENCE = r"(?<=: )(?:parameter|unbound|please|set|is|must|not|no|missing|required) [A-Za-z_]{1,64}(?=[\s.,;!]|\Z)"
NAMED = rf"(?i)((?:%s)(?=([\w.-]{{0,64}}))\2\\?[\"']?\s{{0,8}}[:=]\s{{0,8}})(?!{SENTENCE}){VALUE}"  # \2 has one length
ASSIGNED = re.compile(NAMED % NAMES)
NAMING = rf"--?[\w-]{{0,32}}?(?:{NAMES}|pass(?=\s))[\w-]{{0,64}}"  # an option, also in a list: ["--token", "..."]
OPTION = re.compile(rf"(?i)(?<![\w-])({NAMING}(?:\s|[\"'],)\s{{0,8}})(?!-){VALUE}")
# What matters within a list or an object that is a value.
BRACKET_OR_STRING = re.compile(
    r"([\[({])|([\])}])|\\\"[\s\S]*?(?:\\\"|\Z)|\"(?:[^\"\\]|\\[\s\S])*\"?|'(?:[^'\\]|\\[\s\S])*'?"
)
BEARER = re.compile(r"(?i)\b(bearer\s{1,8})[\w.~+/=-]{8,}")
LOGIN = re.compile(r"(://[^/\s:@]{0,200}:)(?!\d{1,5}[/?#])(?=[^\s\"'<>@]{0,200}@)[^\s\"'<>]{1,200}(?=@)")
USER = re.compile(r"(?<![\w-])((?:-u|--user|--proxy-user)[\s=]{0,8}[\"']?[^\s:\"']{1,200}:)[^\s\"']+")
MYSQL = re.compile(r"(?<![\w-])(mysql\w{0,8}\s(?:[^\n]{0,64}?\s)?-p)[^\s\"']+")
PRIVATE_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)"
LOOKS = re.compile(
    rf"(){PRIVATE_KEY}|\b(?:gh[a-z]_\w{{16,}}|github_pat_\w{{16,}}|glpat-[\w-]{{16,}}|sk[-_][\w-]{{16,}}"
    r"|A[KS]IA[A-Z0-9]{16}\b|xox[a-z]-[\w-]{8,}|rk_(?:live|test)_\w{8,}|AIza[\w-]{30,}|(?:npm|hf)_[A-Za-z0-9]{20,}"
    r"|dckr_[a-z]{3}_[\w-]{16,}|pypi-A[\w-]{16,}|ya29\.[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,})"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
)
# What is, in small letters, in every text in which one of these patterns matches. Most texts have none of it, and to
# look for it takes a small part of the time: a tenth of a millisecond for 8 KiB, instead of four.
SIGN = re.compile(
    r"pass|secret|token|credential|pwd|key|authorization|cookie|bearer|://|-u|mysql|gh[a-z]_|github_|glpat|sk[-_]"
    r"|a[ks]ia|xox|rk_|aiza|npm_|hf_|dckr_|pypi-|ya29|sg\.|eyj"
)


def is_secret_name(name: str, value: object | None = None) -> bool:
    """Whether a value with this name is secret. A number of tokens is not."""
    return _is_secret_name(name[:200], isinstance(value, (int, float)))


@lru_cache(maxsize=4096)
def _is_secret_name(name: str, is_number: bool) -> bool:
    words = [word.lower() for word in WORD.findall(name)]
    joined = "".join(words)
    if name in HARMLESS or joined in HARMLESS or (joined.endswith("tokens") and is_number):
        return False
    return any(part in joined for part in PARTS) or not WORDS.isdisjoint(words)


class Secrets:
    """The secrets of one conversation: these names, besides names that are secret anyway, and these values. With
    `hides_all` every text is hidden, because finding the secrets would take too long."""

    def __init__(self, names: Iterable[str] = (), values: Iterable[str] = (), *, hides_all: bool = False) -> None:
        self.names = frozenset(names)
        self.hides_all = hides_all
        self.values = frozenset(value[:MAX_VALUE_CHARS] for value in values if len(value) >= SHORTEST_VALUE)
        # Plain, and as they are written in JSON within a text. Long ones first: they may contain short ones.
        found = self.values.union(jsontext.dumps(value)[1:-1].decode("ascii") for value in self.values)
        self._spellings = sorted(found, key=len, reverse=True)[: 4 * MAX_VALUES]
        self.longest_with_lines = next((len(value) for value in self._spellings if "\n" in value), 0)
        listed = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True)[:MAX_NAMES]))
        self._named = re.compile(NAMED % listed) if listed else None
        self._small_names = [name.lower() for name in self.names]

    def with_values_in(self, value: object) -> Secrets:
        """A copy that also knows the secrets in this value."""
        if (found := self._values_in(value)) == []:
            return self
        is_too_much = found is None or len(found) > MAX_VALUES
        return Secrets(self.names, [*self.values, *(found or ())], hides_all=self.hides_all or is_too_much)

    def hides_in(self, members: Json, name: str) -> bool:
        """Whether this member is secret: by its name, or as the value in {"name": "token", "value": ...}."""
        value = members[name]
        if value is None:
            return False
        if name == "value" and isinstance(members.get("name"), str):
            return members["name"] in self.names or is_secret_name(members["name"], value)
        return name in self.names or is_secret_name(name, value)

    def _values_in(self, value: object) -> list[str] | None:
        """The secret texts and numbers in a value; None if it is too large or too deep to be searched."""
        found: list[str] = []
        level: list[tuple[object, bool]] = [(value, False)]
        left_nodes = MAX_VALUE_NODES
        for _ in range(MAX_DEPTH):
            below: list[tuple[object, bool]] = []
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

    def without_known_values(self, text: str) -> str:
        for value in self._spellings:
            text = text.replace(value, HIDDEN)
        return text

    def text(self, text: str, *, limit_chars: int = READ_CHARS, turn: Callable[[], object] = tuple) -> str:
        """The text with its secrets hidden, cut at the limit. `turn` is called between the passes over a long text."""
        if self.hides_all:
            return HIDDEN if text else ""
        is_cut = len(text) > limit_chars
        text = self.without_known_values(text[:limit_chars])
        if is_cut and self._spellings:
            text = text[: -len(self._spellings[0])]  # where one of them may begin
        small = text.lower() if text.isascii() else None  # other letters may be equal to these in a pattern only
        has_sign = small is None or SIGN.search(small) is not None
        named = [ASSIGNED, OPTION] if has_sign else []
        if self._named is not None and (small is None or any(name in small for name in self._small_names)):
            named.append(self._named)
        for pattern in named:
            turn()
            text = _without_values(text, pattern)
        for pattern in (HEADER, BEARER, LOGIN, USER, MYSQL, LOOKS) if has_sign else ():
            turn()
            text = pattern.sub(rf"\1{HIDDEN}", text)
        return text

    def copy(self, value: object) -> object:
        """A copy of a JSON value, with secrets hidden and long parts cut."""
        return _Copy(self).of(value)

    def shown(self, value: object) -> str:
        """A JSON value as one line of ASCII, with secrets hidden and long parts cut."""
        encoded = jsontext.dumps(self.copy(value)).decode("ascii")
        return encoded if len(encoded) <= MAX_SHOWN_BYTES else f"{encoded[:MAX_SHOWN_BYTES]}... ({len(encoded)} bytes)"


def _without_values(text: str, named: re.Pattern[str]) -> str:
    """The text without the values that the pattern finds. Of a list or an object it finds the first bracket."""
    kept: list[str] = []
    start = 0
    while found := named.search(text, start):
        kept += [text[start : found.end(1)], HIDDEN]
        start = _end_of_brackets(text, found.end()) if found[found.lastindex or 0] in ("[", "(", "{") else found.end()
    return "".join([*kept, text[start:]])


def _end_of_brackets(text: str, start: int) -> int:
    """Where the bracket is closed that was opened before. If it is not: the end of the line, as it may be "Unexpected
    token: {", or the end of the text if the value plainly goes on in the next line."""
    depth = 1
    for found in BRACKET_OR_STRING.finditer(text, start):
        depth += bool(found[1]) - bool(found[2])
        if depth == 0:
            return found.end()
    end = text.find("\n", start)
    return len(text) if end < 0 or text[start - 1 : end].rstrip().endswith(("[", "(", "{", ",")) else end


class _Copy:
    """Copies a value for a log: secrets are hidden, and the copy ends when it is long enough."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._left_chars = MAX_SHOWN_BYTES

    def of(self, value: object, depth: int = 0) -> object:
        self._left_chars -= 2
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, (dict, list)):
            if depth >= MAX_DEPTH or self._left_chars <= 0:
                return f"... ({len(value)} members)" if value else value
            return self._members(value, depth) if isinstance(value, dict) else self._items(value, depth)
        # ujson cannot write these, infinity among them.
        is_odd = isinstance(value, (int, float)) and not abs(value) < 1 << 63
        return str(value)[:SHOWN_CHARS] if is_odd else value

    def _members(self, value: Json, depth: int) -> Json:
        copy: Json = {}
        for name, member in value.items():
            if self._left_chars <= 0:
                copy["..."] = f"{len(value) - len(copy)} more"
                break
            self._left_chars -= len(name)
            is_hidden = self._secrets.hides_in(value, name)
            copy[self._secrets.text(name)[:SHOWN_CHARS]] = HIDDEN if is_hidden else self.of(member, depth + 1)
        return copy

    def _items(self, value: list[object], depth: int) -> list[object]:
        copy: list[object] = []
        for item in value:
            if self._left_chars <= 0:
                return [*copy, f"... ({len(value) - len(copy)} more)"]
            copy.append(self.of(item, depth + 1))
        return copy

    def _text(self, text: str, depth: int) -> str:
        shown = None
        if text[:1] in ("{", "[") and len(text) <= READ_CHARS and depth < MAX_DEPTH:
            # The text of a result is often JSON, so its members can be looked at.
            try:
                value = jsontext.loads(text)
            except ValueError:
                pass
            else:
                shown = jsontext.dumps(_Copy(self._secrets).of(value, MAX_DEPTH // 2)).decode("ascii")
        if shown is None:
            shown = self._secrets.text(text, limit_chars=SHOWN_CHARS + MAX_VALUE_CHARS)
        if len(text) > SHOWN_CHARS:
            shown = f"{shown[:SHOWN_CHARS]}... ({len(text.encode('utf-8', 'replace'))} bytes)"
        self._left_chars -= len(shown)
        return shown


def secret_names(schema: object, *, whole: Iterable[str]) -> set[str]:
    """The names of members that a schema declares as secret, at any depth; `whole` if the value itself is secret, or
    members that the schema does not name."""
    names: set[str] = set()
    if _is_secret(schema, schema):
        names.update(whole)
    for part, _ in islice(jsontext.walked(schema), MAX_SCHEMA_NODES):
        members = part.get("properties") if isinstance(part, dict) else None
        if isinstance(members, dict):
            names.update(name for name, member in members.items() if _is_secret(member, schema))
    return names


IN_PLACE = ("additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "oneOf", "prefixItems", "then")


def _is_secret(part: object, schema: object, depth: int = 0) -> bool:
    """Whether a schema declares its value secret, or a part of it other than named members."""
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
