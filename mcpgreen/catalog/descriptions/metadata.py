"""Read the description of one item, and report exactly what is wrong with it.

A description is `<file>.meta.json`, `<stem>.meta.json`, the same with .yaml or .yml, or one `mcp:` comment within the
first ten lines of the file (`comments`). Only the first that exists counts. The fields of each kind of item are in
`tools`, `resources` and `prompts`; what all kinds share is here.

Rule: a mistake that would make a client reject the whole list (name, types) raises ProjectError and costs this one
item. Decoration (icons, annotations) is dropped with a warning. Scopes that cannot be read cost the item, because they
protect it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeGuard

from mcpgreen.catalog.descriptions import HEAD_BYTES
from mcpgreen.errors import ProjectError
from mcpgreen.files.confined import Private
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.running.system import MAX_SECS
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

UI_DESCRIPTION = "ui.meta.json"  # describes an MCP App, and not a script beside which it lies
EXECUTABLE_BITS = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

MAX_META_BYTES = 524_288
MAX_META_VALUES = 30_000  # reading them takes 30 ms, in which no request is served
READ_BYTES = 16_384  # more is only asked for if the file is larger
MAX_SCOPES = 50

MAX_NAME_CHARS = 128
# Patterns are compiled when they are first used, because few descriptions need them. Only that of names always is.
# A completion script in any language. A text of such a name is a prompt or a resource.
_COMPLETION = r"(?s)(.+)\.completion(\.(?!(?:txt|text|md|markdown|rst)$)[^.]+)?"
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME_CHARS}}}")
_SCOPE = r"[!#-\[\]-~]+"  # a scope-token of RFC 6749: printable ASCII without space, quote and backslash
# Fields that describe or contain arguments, which may be called scope.
_OF_ARGUMENTS = r"\w*[sS]chema|arguments|parameters|properties|examples|inputRequests|messages"
_ESCAPED_LETTER = rb"\\(?:x|u00|U000000)([4-7][0-9a-fA-F])"
_JSON_PLACE = r"\bline 1 column (\d+)"
_NOT_IN_NAMES = r"[^A-Za-z0-9_.-]"
OTHERS_SAY = {"timeout": "timeoutSecs", "parameters": "inputSchema"}  # the names in other servers and APIs
MAX_GUESSES = 50  # comparing names is slow, and so many unknown fields are no typing errors
# As narrow as the strictest client, which rejects a whole list for one leap second.
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"
_INSTANT = rf"(?a)\d{{4}}-\d\d-\d\dT{_CLOCK}:[0-5]\d(\.\d+)?(Z|[+-]{_CLOCK})"


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_natural(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and is_number(value) and value >= 0


def is_instant(value: object) -> bool:
    """Tell whether this is a time of RFC 3339, on a day that exists."""
    if not isinstance(value, str) or not matches(_INSTANT, value):
        return False
    from datetime import date  # takes memory, and few descriptions have a time

    try:
        return bool(date.fromisoformat(value[:10]))
    except ValueError:
        return False


def is_scope(value: object) -> bool:
    return matches(_SCOPE, value)


def matches(pattern: str | re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


class Origin(NamedTuple):
    """Where a description was read, and where complaints go that do not cost the item. Icons may not be `private`."""

    path: str
    private: Private
    complaints: list[str]


class Rule(NamedTuple):
    """What a field has to be: as a function, in words, and as the JSON Schema for editors."""

    accepts: Callable[[object], bool]
    wanted: str
    schema: Mapping[str, object] = {}


A_NAME = Rule(
    lambda value: matches(_NAME, value),
    f"1 to {MAX_NAME_CHARS} characters from A-Z a-z 0-9 _ . -",
    {"type": "string", "pattern": f"^{_NAME.pattern}$"},
)
A_STRING = Rule(lambda value: isinstance(value, str), "a string", {"type": "string"})
AN_OBJECT = Rule(lambda value: isinstance(value, dict), "an object", {"type": "object"})
AN_OBJECT_OR_BOOLEAN = Rule(
    lambda value: isinstance(value, (dict, bool)), "an object or a boolean", {"type": ["object", "boolean"]}
)
A_BOOLEAN = Rule(lambda value: isinstance(value, bool), "true or false", {"type": "boolean"})
A_DURATION = Rule(
    lambda value: is_number(value) and 0 < value <= MAX_SECS,
    "a positive number",
    {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECS},
)
SCOPES = Rule(
    lambda value: isinstance(value, list) and len(value) <= MAX_SCOPES and all(map(is_scope, value)),
    f"an array of at most {MAX_SCOPES} scopes, each a string without spaces",
    {"type": "array", "maxItems": MAX_SCOPES, "items": {"type": "string", "pattern": f"^{_SCOPE}$"}},
)


def one_of(values: tuple[str, ...]) -> Rule:
    return Rule(lambda value: value in values, f"one of {', '.join(values)}", {"enum": list(values)})


COMMON_RULES = {
    "title": A_STRING,
    "description": A_STRING,
    "inputSchema": AN_OBJECT,
    "annotations": AN_OBJECT,
    "_meta": AN_OBJECT,
}

ANNOTATION_RULES = {
    "title": A_STRING,
    **dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), A_BOOLEAN),
    "audience": Rule(
        lambda value: isinstance(value, list) and all(role in ("user", "assistant") for role in value),
        'an array of "user" and/or "assistant"',
        {"type": "array", "items": {"enum": ["user", "assistant"]}},
    ),
    "priority": Rule(
        lambda value: is_number(value) and 0 <= value <= 1,
        "a number from 0 to 1",
        {"type": "number", "minimum": 0, "maximum": 1},
    ),
    "lastModified": Rule(is_instant, "an RFC 3339 time with Z or an offset", {"type": "string", "format": "date-time"}),
}


def stem_of(file_name: str) -> str:
    return file_name.rpartition(".")[0] or file_name


def meta_file_for(file_name: str, names: Collection[str]) -> str | None:
    """The description that counts for a file, among the `names` beside it."""
    return next(iter(meta_files_for(file_name, names)), None)


def meta_files_for(file_name: str, names: Collection[str]) -> list[str]:
    """All descriptions of a file among the `names` beside it. The first counts."""
    if not names:
        return []
    stem, (json, *others) = stem_of(file_name), META_SUFFIXES  # JSON first
    owners = (file_name,) if stem == file_name else (file_name, stem)
    wanted = [owner + json for owner in owners] + [owner + suffix for owner in owners for suffix in others]
    return [name for name in wanted if name in names]


def is_description(file_name: str) -> bool:
    return file_name.endswith(META_SUFFIXES)


def is_accompanying(file_name: str) -> bool:
    """Tell whether a file belongs to another one: a description, or a completion script in any language."""
    return is_description(file_name) or (".completion" in file_name and matches(_COMPLETION, file_name))


def completions_beside(path: str) -> list[str]:
    """Return the completion scripts next to an item's file or description. The first that is executable counts."""
    directory, file_name = os.path.split(path)
    owners = [described_stem(file_name)] if is_description(file_name) else [file_name, stem_of(file_name)]
    try:
        found = [
            match for name in os.listdir(directory) if (match := re.fullmatch(_COMPLETION, name)) and match[1] in owners
        ]
    except OSError:
        return []
    found.sort(key=lambda match: (owners.index(match[1]), match[2] not in (".sh", None), match[0]))
    return [os.path.join(directory, match[0]) for match in found]


def lonely_descriptions(names: Iterable[str]) -> list[str]:
    """The descriptions without a file beside them that they describe."""
    known = set(names)
    described = {meta_file_for(name, known) for name in known if not is_accompanying(name)}
    return sorted(name for name in known if is_description(name) and name not in described)


def described_stem(file_name: str) -> str:
    """The name of the item that a description describes; for another file its stem."""
    return file_name.rpartition(".meta.")[0] if is_description(file_name) else stem_of(file_name)


def read_meta_file(path: str) -> Json:
    try:
        raw = read_start(path, MAX_META_BYTES + 1)
    except (PermissionError, FileNotFoundError) as error:
        raise ProjectError(path, f"cannot be read: {error.strerror}") from error
    if len(raw) > MAX_META_BYTES:
        raise ProjectError(path, f"larger than {MAX_META_BYTES} bytes")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    return _parsed_json(path, raw) if path.endswith(".json") else _parsed_yaml(path, raw)


def read_inline_of(path: str, *, is_prose: bool = False) -> Json | None:
    """Read the annotation in a file; None if there is none."""
    return read_inline(path, head_of(path) or b"", is_prose=is_prose)


def head_of(path: str) -> bytes | None:
    """The first bytes of a file; None if we may not read it, which does not keep us from running it."""
    try:
        return read_start(path, HEAD_BYTES)
    except PermissionError:
        return None
    except FileNotFoundError:
        return b""


def read_inline(path: str, head: bytes, *, is_prose: bool = False) -> Json | None:
    """Read the annotation in the first lines of a file; None if there is none. See `comments.inline_in`."""
    from mcpgreen.catalog.descriptions.comments import inline_in  # not needed with a description in a file of its own

    found = inline_in(head, is_prose=is_prose)
    if found is None:
        return None
    if found.is_cut:
        raise ProjectError(path, f"the mcp: comment must end within {HEAD_BYTES} bytes; use a .meta.json file instead")
    if found.is_yaml:
        if not found.text.strip():
            raise ProjectError(path, "nothing is indented below mcp:")
        return _parsed_yaml(path, found.text)
    try:
        return _parsed_json(path, found.text)
    except ProjectError as error:
        indent = head.find(found.text, found.start) - head.rfind(b"\n", 0, found.start) - 1
        reason = re.sub(_JSON_PLACE, lambda at: f"line {found.line} column {indent + int(at[1])}", error.reason)
        if found.text.count(b"{") > found.text.count(b"}"):
            reason += "; a } is missing, or the JSON continues on the next line: write it on one line, after mcp:"
        raise ProjectError(path, reason) from error


def read_start(path: str, size: int) -> bytes:
    """The first `size` bytes of a file, or all if there are fewer."""
    # Non-blocking, in case that a FIFO has taken the place of the file since it was listed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # A buffer of the full size for each file would cost five times as much as reading it.
        return os.read(descriptor, min(size, max(READ_BYTES, os.fstat(descriptor).st_size)))
    finally:
        os.close(descriptor)


def item_sources(names: Iterable[str]) -> list[str]:
    """The files of a directory that stand for an item each: data, and descriptions without data. A completion script
    belongs to another file; for a README see `items.leave_out_readme`."""
    known = list(names)
    return [name for name in known if not is_accompanying(name)] + lonely_descriptions(known)


def may_mean_scopes(field: str) -> bool:
    """Tell whether the author may have meant `scopes` by this name: a typing error must not remove a protection."""
    letters = "".join(filter(str.isalpha, field.lower()))
    if "scope" in letters:
        return True
    if letters[:1] != "s" or len(letters) > 8:
        return False
    from difflib import SequenceMatcher  # takes long to import, and most descriptions are correct

    return SequenceMatcher(None, letters, "scopes").ratio() >= 0.8


def require_known_scopes(path: str, fields: Mapping[str, object], known: Container[str], prefix: str = "") -> None:
    """Raise ProjectError for an unknown field that may mean `scopes`, for one that contains such a field unless there
    are `scopes`, or for scopes that are null. Leaving it out with a warning would open the item for every caller."""
    remedy = "did you mean scopes?" if "scopes" in known else "scopes have no effect here, so it is not served"
    may_be_inside = "scopes" not in fields and "scope" in repr(fields).lower()  # most have none, and this is quick
    for field, value in fields.items():
        if field not in known and may_mean_scopes(field):
            raise ProjectError(path, f"{prefix}{field} is unknown; {remedy}")
        if field == "scopes" and value is None:
            raise ProjectError(path, f"{prefix}scopes must be an array, found null; leave it out if there are none")
        if may_be_inside and _contains_scopes({field: value}):
            raise ProjectError(path, f"{prefix}{field} mentions scopes, but they have no effect there; {remedy}")


def _contains_scopes(value: object) -> bool:
    """Tell whether a name mentions scopes, outside of schemas and examples."""
    if not isinstance(value, dict):
        return isinstance(value, list) and any(map(_contains_scopes, value))
    inner = (each for name, each in value.items() if not matches(_OF_ARGUMENTS, name))
    return any("scope" in name.lower() for name in value) or any(map(_contains_scopes, inner))


def checked(path: str, fields: Json, rules: Mapping[str, Rule], prefix: str = "") -> Json:
    """The fields without those that are null or only for editors. Raises ProjectError for one of the wrong type."""
    require_known_scopes(path, fields, rules, prefix)
    given = {key: value for key, value in fields.items() if value is not None and key != "$schema"}
    for key, problem in violations(rules, given):
        raise ProjectError(path, f"{prefix}{key} {problem}")
    return given


def violations(rules: Mapping[str, Rule], given: Json) -> Iterator[tuple[str, str]]:
    """The members that break their rule, each with the end of a sentence that says how."""
    for key, value in given.items():
        rule = rules.get(key)
        if rule is not None and not rule.accepts(value):
            yield key, f"must be {rule.wanted}, found {shown(value)}"


def definition_of(origin: Origin, named: Json, fields: Json, *, plain: Iterable[str], known: Collection[str]) -> Json:
    """The fields that every kind may have: the `plain` ones as they are, annotations, icons, _meta."""
    definition = {**named, **{key: fields[key] for key in ("title", "description", *plain) if key in fields}}
    origin.complaints.extend(likely_typos(fields, known, ""))
    if "annotations" in fields:
        given, prefix = fields["annotations"], "annotations."
        require_known_scopes(origin.path, given, ANNOTATION_RULES, prefix)
        origin.complaints.extend(likely_typos(given, ANNOTATION_RULES, prefix))
        wrong = dict(violations(ANNOTATION_RULES, given))
        origin.complaints.extend(f"{prefix}{key} is left out: it {problem}" for key, problem in wrong.items())
        definition["annotations"] = {key: value for key, value in given.items() if key not in wrong}
    if "icons" in fields:
        from mcpgreen.project.icons import wire_icons  # few items have icons

        directories = (os.path.dirname(origin.path),)
        usable, complaints = wire_icons(fields["icons"], directories=directories, private=origin.private)
        origin.complaints.extend(complaints)
        definition |= {"icons": usable} if usable else {}
    if "_meta" in fields:
        definition["_meta"] = fields["_meta"]
    return definition


def default_name(stem: str) -> str:
    """A legal name for an item, made from the name of its file or folder."""
    return re.sub(_NOT_IN_NAMES, "-", stem)[:MAX_NAME_CHARS]


def likely_typos(fields: Iterable[str], known: Iterable[str], prefix: str) -> list[str]:
    """Complaints about unknown fields that look like a known one. Other unknown fields may be the author's own."""
    unknown = [field for field in fields if field not in known][:MAX_GUESSES]
    if not unknown:
        return []
    from difflib import get_close_matches

    guesses = {field: get_close_matches(field, list(known), n=1, cutoff=0.8) for field in unknown}
    guesses |= {field: [meant] for field, meant in OTHERS_SAY.items() if field in unknown and meant in known}
    return [f"{prefix}{field} is unknown; did you mean {guess[0]}?" for field, guess in guesses.items() if guess]


def _parsed_json(path: str, raw: bytes) -> Json:
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MAX_META_VALUES:
        raise ProjectError(path, f"it has more than {MAX_META_VALUES} values")
    try:
        value = jsontext.loads(raw)
        require_names_once(raw)
        jsontext.dumps(value)  # 1e999 reads as infinity, and would make the whole list unwritable
    except ValueError as error:
        raise ProjectError(path, f"not valid JSON: {error}") from error
    return require_object(path, value)


def _parsed_yaml(path: str, raw: bytes) -> Json:
    from mcpgreen.catalog.descriptions import yaml_text  # most descriptions are JSON

    try:
        value = yaml_text.value_of(raw)
        for keys, (line, column) in yaml_text.duplicates_in(raw) if mentions_scopes(raw) else ():
            raise ValueError(f"{keys[-1]} occurs again at line {line}, column {column}, so scopes could get lost")
    except ValueError as error:
        raise ProjectError(path, f"not valid YAML: {error}") from error
    return require_object(path, value)


def require_object(path: str, value: object) -> Json:
    if isinstance(value, dict):
        return value
    raise ProjectError(path, f"must be an object, found {shown(value)}")


def shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = jsontext.dumps(value).decode("ascii")
    return text if len(text) <= 60 else text[:57] + "..."


def require_names_once(raw: bytes) -> None:
    """Raise ValueError if a JSON text that mentions scopes has a name twice: a parser takes the last one."""
    if not mentions_scopes(raw):
        return
    import json  # takes longer to import than ten descriptions to read
    from collections import Counter

    def require_one(pairs: list[tuple[str, object]]) -> None:
        if twice := [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]:
            raise ValueError(f"{twice[0]} occurs twice, so scopes could get lost; keep only one")

    json.loads(raw, object_pairs_hook=require_one)


def mentions_scopes(text: bytes) -> bool:
    return b"scope" in in_plain_letters(text)


def in_plain_letters(text: bytes) -> bytes:
    """Return the text in lower case, without escapes for letters and without a byte order mark."""
    text = text.removeprefix(b"\xef\xbb\xbf")
    if b"\\" in text:
        text = re.sub(_ESCAPED_LETTER, lambda code: bytes([int(code[1], 16)]), text)
    return text.lower()
