"""Read how an author describes one item, and say precisely what is wrong with it.

A description is `<file>.meta.json`, `<stem>.meta.json`, the same with .yaml or .yml, or one `mcp:` comment within the
first ten lines of the file (`comments`); the first that exists counts, whole. Which fields an item has is said by its
own module (`tools`, `resources`, `prompts`); what all of them share is here.

Rule: what would make a client reject the whole list (name, types) raises ProjectError and costs the author this one
item; what is decoration (icons, annotations) is dropped with a warning.
"""

from __future__ import annotations

import os
import stat

from mcpgreen.catalog.descriptions.comments import HEAD_BYTES, Inline, inline_in
from mcpgreen.errors import ProjectError
from mcpgreen.project.unmarked import META_SUFFIXES
from mcpgreen.running.processes.deadline import MAX_SECS
from mcpgreen.text import jsontext
from mcpgreen.text.patterns import pattern
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
    from typing import Any

    from mcpgreen.files.confined import Private

UI_DESCRIPTION = "ui.meta.json"  # describes an MCP App, and not a script beside which it lies
COMPLETION_SUFFIXES = (".completion.sh", ".completion")
ACCOMPANYING = META_SUFFIXES + COMPLETION_SUFFIXES
EXECUTABLE_BITS = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

MAX_META_BYTES = 524_288
MAX_META_VALUES = 30_000  # to look at them takes 30 ms, and nobody is served meanwhile
READ_BYTES = 16_384

MAX_NAME_CHARS = 128
_JSON_PLACE = pattern(r"\bline 1 column (\d+)")
_NOT_IN_NAMES = pattern(r"[^A-Za-z0-9_.-]")
OTHERS_SAY = {"timeout": "timeoutSecs", "parameters": "inputSchema"}  # servers and APIs that people come from
MAX_GUESSES = 50  # to compare names takes its time, and who has more unknown fields made no typing errors
# A number as it looks: every digit a 0, and `e` and `+` where they stand. In this, numbers are found without patterns.
_LOOKS = bytes.maketrans(b"123456789E", b"000000000e")
_HUGE = (b"0e000", b"0e+000", b"0" * 300)
# As narrow as the strictest client, which rejects a whole list for one leap second.
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"
_INSTANT = pattern(rf"(?a)(\d{{4}})-(\d\d)-(\d\d)T{_CLOCK}:[0-5]\d(\.\d+)?(Z|[+-]{_CLOCK})")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_instant(value: Any) -> bool:
    """A time of RFC 3339, on a day that exists."""
    found = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return False
    from datetime import date

    try:
        date(*map(int, found.groups()[:3]))
    except ValueError:
        return False
    return True


def is_name(value: Any) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARS:
        return False
    rest = value.replace("_", "").replace(".", "").replace("-", "")
    return value.isascii() and (rest.isalnum() or not rest)


class Origin(NamedTuple):
    """Where a description was read, what icons may not be taken from, and what is wrong but does not cost the item."""

    path: str
    private: Private
    complaints: list[str]


class Rule(NamedTuple):
    """What a field has to be: as a question, in words, and as the JSON Schema that editors get."""

    accepts: Callable[[Any], bool]
    wanted: str
    schema: Mapping[str, Any] = {}


A_NAME = Rule(
    is_name,
    f"1 to {MAX_NAME_CHARS} of A-Z a-z 0-9 _ . -",
    {"type": "string", "pattern": f"^[A-Za-z0-9_.-]{{1,{MAX_NAME_CHARS}}}$"},
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
        "an array of user and assistant",
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


def meta_file_for(file_name: str, names: Container[str]) -> str | None:
    """Which of the `names` beside the script describes it."""
    for suffixes in (META_SUFFIXES[:1], META_SUFFIXES[1:]):
        for owner in (file_name, stem_of(file_name)):
            for suffix in suffixes:
                if owner + suffix in names:
                    return owner + suffix
    return None


def is_description(file_name: str) -> bool:
    return file_name.endswith(META_SUFFIXES)


def lonely_descriptions(names: Iterable[str]) -> list[str]:
    """Descriptions beside which there is nothing that they could describe."""
    known = set(names)
    described = {meta_file_for(name, known) for name in known if not name.endswith(ACCOMPANYING)}
    return sorted(name for name in known if is_description(name) and name not in described)


def described_stem(file_name: str) -> str:
    """The name of what a description describes; of another file its stem."""
    return file_name.rpartition(".meta.")[0] if is_description(file_name) else stem_of(file_name)


def read_meta_file(path: str) -> dict[str, Any]:
    try:
        raw = read_start(path, MAX_META_BYTES + 1)
    except (PermissionError, FileNotFoundError) as error:
        raise ProjectError(path, f"cannot be read: {error.strerror}") from error
    if len(raw) > MAX_META_BYTES:
        raise ProjectError(path, f"larger than {MAX_META_BYTES} bytes")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    return _parsed_json(path, raw) if path.endswith(".json") else _parsed_yaml(path, raw)


def read_inline_of(path: str, *, is_prose: bool = False) -> dict[str, Any] | None:
    """The annotation in a file of which nothing has been read yet; None if there is none."""
    return read_inline(path, head_of(path) or b"", is_prose=is_prose)


def head_of(path: str, expected_bytes: int = READ_BYTES) -> bytes | None:
    """How a file begins; None for one that may not be read. If it is executable, it can only be run."""
    try:
        return read_start(path, HEAD_BYTES, expected_bytes)
    except (PermissionError, FileNotFoundError) as error:
        return None if isinstance(error, PermissionError) else b""


def read_inline(path: str, head: bytes, *, is_prose: bool = False) -> dict[str, Any] | None:
    """The annotation in the script's first lines, or None; see `comments.inline_in`."""
    found = inline_in(head, is_prose=is_prose)
    if found is None:
        return None
    if found.is_cut:
        raise ProjectError(path, f"the mcp: annotation goes beyond {HEAD_BYTES} bytes; use a .meta.json file")
    if found.is_yaml:
        if not found.text.strip():
            raise ProjectError(path, "nothing is indented below mcp:")
        return _parsed_yaml(path, found.text)
    try:
        return _parsed_json(path, found.text)
    except ProjectError as error:
        reason = _JSON_PLACE.sub(lambda place: _place_in_script(head, found, int(place[1])), error.reason)
        if found.text.count(b"{") > found.text.count(b"}"):
            reason += "; a } is missing, or it goes on in the next line: JSON after mcp: has to be on one line"
        raise ProjectError(path, reason) from error


def _place_in_script(head: bytes, found: Inline, column: int) -> str:
    begin = head.rfind(b"\n", 0, found.start) + 1
    text_at = head.find(found.text, found.start)
    return f"line {found.line} column {text_at - begin + column}"


def read_start(path: str, size: int, expected_bytes: int = READ_BYTES) -> bytes:
    """The first `size` bytes, or all if there are fewer, as is expected."""
    # Non-blocking, in case that a FIFO has taken the place of the file since it was listed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # A buffer of the full size for each file would cost five times as much as reading it.
        content, wanted_bytes = b"", min(size, READ_BYTES, expected_bytes + 1)
        while chunk := os.read(descriptor, wanted_bytes):
            content += chunk
            if len(chunk) < wanted_bytes or len(content) == size:
                break
            wanted_bytes = min(size - len(content), READ_BYTES)
        return content
    finally:
        os.close(descriptor)


def item_sources(names: Iterable[str]) -> list[str]:
    """The files of a directory that stand for an item each: data, and descriptions without data. A completion script
    only accompanies another file, and so does a README beside something described."""
    known = list(names)
    described = {described_stem(name) for name in known if is_description(name)}
    data = [name for name in known if not name.endswith(ACCOMPANYING)]
    readmes = {name for name in data if stem_of(name).lower() == "readme" and described - {name, stem_of(name)}}
    return [name for name in data if name not in readmes] + lonely_descriptions(known)


def checked(path: str, fields: dict[str, Any], rules: Mapping[str, Rule], prefix: str = "") -> dict[str, Any]:
    """The fields that say something to us: `$schema` is for editors. Raises ProjectError for one of the wrong type."""
    given = {key: value for key, value in fields.items() if value is not None and key != "$schema"}
    for key, problem in violations(rules, given):
        raise ProjectError(path, f"{prefix}{key} {problem}")
    return given


def violations(rules: Mapping[str, Rule], given: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The members that break their rule, and how, as the end of a sentence."""
    for key, value in given.items():
        rule = rules.get(key)
        if rule is not None and not rule.accepts(value):
            yield key, f"must be {rule.wanted}, found {shown(value)}"


def definition_of(
    origin: Origin, named: dict[str, Any], fields: dict[str, Any], *, plain: Iterable[str], known: Collection[str]
) -> dict[str, Any]:
    """What every kind may have: the `plain` fields as they are, annotations, icons, _meta."""
    definition = {**named, **{key: fields[key] for key in ("title", "description", *plain) if key in fields}}
    origin.complaints.extend(likely_typos(fields, known, ""))
    if "annotations" in fields:
        definition["annotations"] = _sound_annotations(fields["annotations"], origin.complaints)
    if "icons" in fields:
        from mcpgreen.project.icons import wire_icons

        directories = (os.path.dirname(origin.path),)
        usable, complaints = wire_icons(fields["icons"], directories=directories, private=origin.private)
        origin.complaints.extend(complaints)
        if usable:
            definition["icons"] = usable
    if "_meta" in fields:
        definition["_meta"] = fields["_meta"]
    return definition


def default_name(file_name: str) -> str:
    """A legal name made from the name of the file, which may hold anything."""
    stem = stem_of(file_name)
    return stem if is_name(stem) else _NOT_IN_NAMES.sub("-", stem)[:MAX_NAME_CHARS]


def likely_typos(fields: Iterable[str], known: Iterable[str], prefix: str) -> list[str]:
    """Fields that nobody knows but that look like one that somebody does. Others may be the author's own."""
    unknown = [field for field in fields if field not in known][:MAX_GUESSES]
    if not unknown:
        return []
    from difflib import get_close_matches

    guesses = {field: get_close_matches(field, list(known), n=1, cutoff=0.8) for field in unknown}
    guesses |= {field: [meant] for field, meant in OTHERS_SAY.items() if field in unknown and meant in known}
    return [f"{prefix}{field} is unknown; did you mean {guess[0]}?" for field, guess in guesses.items() if guess]


def _sound_annotations(given: dict[str, Any], complaints: list[str]) -> dict[str, Any]:
    complaints.extend(likely_typos(given, ANNOTATION_RULES, "annotations."))
    wrong = dict(violations(ANNOTATION_RULES, given))
    complaints.extend(f"annotations.{key} is left out: it {problem}" for key, problem in wrong.items())
    return {key: value for key, value in given.items() if key not in wrong}


def _parsed_json(path: str, raw: bytes) -> dict[str, Any]:
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MAX_META_VALUES:
        raise ProjectError(path, f"it has more than {MAX_META_VALUES} values")
    try:
        value = jsontext.loads(raw)
        looks = raw.translate(_LOOKS)
        if any(each in looks for each in _HUGE):
            # 1e999 reads as infinity, and one number that cannot be written would take the whole list with it.
            jsontext.dumps(value)
    except ValueError as error:
        raise ProjectError(path, f"not valid JSON: {error}") from error
    return require_object(path, value)


def _parsed_yaml(path: str, raw: bytes) -> dict[str, Any]:
    from mcpgreen.catalog.descriptions import yaml_text

    try:
        return require_object(path, yaml_text.value_of(raw))
    except ValueError as error:
        raise ProjectError(path, f"not valid YAML: {error}") from error


def require_object(path: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProjectError(path, f"must be an object, found {shown(value)}")
    return value


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = jsontext.dumps(value).decode("ascii")
    return text if len(text) <= 60 else text[:57] + "..."
