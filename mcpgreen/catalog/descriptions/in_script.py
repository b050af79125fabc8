"""Read how a script describes itself: in its `mcp:` comment (`comments`) and, in a shell script, in its `@arg` and
`@env` comments, which declare the tool's arguments and the server's variables that it gets.

    # Greet somebody.
    # @arg name!                   Who is greeted
    # @arg times=1 int             How often
    # @arg tone[warm|cool]=warm    In which tone
    # @env GREETER_KEY!            For the service

`# @arg NAME[!][[a|b]][=default] [TYPE]  TEXT`, in the comments before the first command. `!` is required, the type is
one of `TYPES` or `SYNONYMS`, and a comment line that is indented deeper continues the text. The comment above the first
`@arg` or `@env` describes the tool. `sdk/arguments.sh` reads the same lines when the script runs: change both together.

Rules: the script is read, never run. A line that cannot be understood, or a part of it, is left out with a complaint
that names its place.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.comments import ARGUMENT, inline_in
from mcpgreen.errors import ProjectError
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

TYPES: dict[str, Json] = {
    "string": {"type": "string"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
    "json": {},
}
SYNONYMS = {"integer": "int", "boolean": "bool"}  # as JSON Schema calls them
# Names of types in other languages. As part of the text they would be lost.
LIKELY_TYPES = {
    **dict.fromkeys(("Integer", "Int", "uint", "long"), "int"),
    **dict.fromkeys(("float", "double", "Number", "decimal"), "number"),
    **dict.fromkeys(("Boolean", "Bool", "flag"), "bool"),
    **dict.fromkeys(("str", "String", "text"), "string"),
    **dict.fromkeys(("array", "Array", "List"), "list"),
    **dict.fromkeys(("object", "Object", "JSON", "dict"), "json"),
}
_LINE = r"(\s*#+\s*)@(arg|env)(?=\s|$)(.*)"
_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_ARGUMENT = (
    rf"\s+(?P<name>{_NAME})(?P<required>!?)(?:\[(?P<choices>[^\[\]]*)\])?"
    r"""(?:=(?P<default>"[^"]*"(?!\S)|'[^']*'(?!\S)|[^\s"']\S*|(?!\S)))?"""
    rf"(?:\s+(?P<type>{'|'.join((*TYPES, *SYNONYMS))})(?!\S))?(?P<text>(?:\s.*)?)"
)
_VARIABLE = r"\s+([A-Za-z_][A-Za-z0-9_]{0,127}!?)(?!\S)"
_OF_SHDOC = r"\s+\$"  # `@arg $1 string ...` of shdoc documents a function
_CLEAR_TYPES = ("str", "float", "double", "uint")  # the other likely types may also begin a sentence
# As in number[], array<int>, enum(a,b), int=5 and string|null.
_OTHER_NOTATION = r"([A-Za-z]+)(?:(\[\w*\]|<\S+>)|\((\S+)\)|=(\S+)|\|\S+)"
_NO_WORDS = r"shellcheck |-\*-|vim?:|SPDX-|@"
_SCALARS = {
    "int": r"(?a)-?(0|[1-9]\d{0,29})",
    "number": r"(?a)-?(0|[1-9]\d{0,29})(\.\d{1,30})?([eE][-+]?\d{1,2})?",
    "bool": "true|false",
}
# Variables that change how shells and programs work: those in capitals, and these.
_RESERVED = r"[A-Z0-9_]+|_.*|(?:BASH|LD_|DYLD_|MCP).*|auto_resume|histchars|.*_proxy"
PREFIX = "arg_"
SCHEMAS = ("inputSchema", "arguments")
_UNKNOWN = r'unknown key "([^"]{1,80})"'
_FIELD = r"[A-Za-z_][\w-]*(?:\.[\w$-]+|\[\d+\])*"
_NAMES_LINE = r"\bline \d+"


class Place(NamedTuple):
    line: int
    column: int

    def __str__(self) -> str:
        return f"(line {self.line}, column {self.column})"


class Arguments(NamedTuple):
    """The description of the tool, the schema of its arguments, the place of each, complaints and hints."""

    description: str
    schema: Json
    places: dict[str, Place]
    complaints: list[str]
    hints: list[str]
    variables: list[str]  # of `@env`


class ScriptDescription(NamedTuple):
    """The fields of a description, with complaints about parts that cannot be understood, and hints."""

    fields: Json
    complaints: list[str] = []
    hints: list[str] = []


def read_script(path: str, head: bytes) -> ScriptDescription | None:
    """Read the description in the first bytes of a script; None if it has none. Raises ProjectError."""
    fields = metadata.read_inline(path, head)
    arguments = arguments_of(path, head)
    if arguments is None:
        return ScriptDescription(fields) if fields is not None else None
    complaints = list(arguments.complaints)
    described = {"description": arguments.description} if arguments.description else {}
    rest = dict(fields or {})
    if arguments.variables:
        others = rest.get("env", [])
        rest["env"] = [*others, *arguments.variables] if isinstance(others, list) else others
    for key in SCHEMAS if arguments.schema else ():
        if rest.pop(key, None) is not None:
            complaints.append(f"{key} is ignored: the @arg comments define the arguments")
    fields = {**described, **rest, **({"inputSchema": arguments.schema} if arguments.schema else {})}
    return ScriptDescription(fields, complaints, arguments.hints)


def reason_with_place(error: ProjectError) -> str:
    """The reason of an error. If it is about YAML in a comment and does not name the line, add line and column."""
    if metadata.is_description(error.path) or re.search(_NAMES_LINE, error.reason):
        return error.reason
    try:
        found = inline_in(metadata.head_of(error.path) or b"")
    except OSError:
        return error.reason
    if found is None or not found.is_yaml:
        return error.reason
    from mcpgreen.catalog.descriptions.yaml_text import marks_in

    marks = marks_in(found.text)
    keys = keys_in(error.reason)
    while keys and keys not in marks:
        keys = keys[:-1]
    line, column = marks.get(keys, (found.line, 1))
    return f"{error.reason} (line {line}, column {column})"


def keys_in(sentence: str) -> tuple[str | int, ...]:
    """The keys of the member that a sentence begins with: `inputSchema.required must be an array`."""
    if unknown := re.match(_UNKNOWN, sentence):
        return (unknown[1],)
    field = re.match(_FIELD, sentence)
    parts = re.findall(r"[^.\[\]]+", field[0]) if field else []
    return tuple(int(part) if part.isdigit() else part for part in parts)


def variable_of(name: str) -> str:
    """The variable that `mcp_args_parse` sets."""
    variable = name.replace("-", "_")
    return PREFIX + variable if re.fullmatch(_RESERVED, variable) else variable


def arguments_of(path: str, head: bytes) -> Arguments | None:
    """Read the `@arg` and `@env` comments of a shell script; None for another script, or one without such comments. The
    schema is empty without `@arg`."""
    if (ARGUMENT not in head and b"@env" not in head) or program_of(path, head) not in SHELLS:
        return None
    inline = inline_in(head)
    skipped = range(inline.line, inline.end_line + 1) if inline else range(0)
    found = _Found()
    for number, row in enumerate(head.decode("utf-8", "replace").split("\n"), 1):
        if row.strip() and not row.lstrip().startswith("#"):
            break
        if number not in skipped and not (number == 1 and row.startswith("#!")):
            found.take(row.rstrip(), number)
    return found.arguments() if found.properties or found.complaints or found.variables else None


class _Found:
    """Reads the comments line by line."""

    def __init__(self) -> None:
        self.properties: dict[str, Json] = {}
        self.complaints: list[str] = []
        self.variables: list[str] = []
        self._has_arguments = False
        self._required: list[str] = []
        self._names: dict[str, str] = {}  # by the variable that each sets
        self._places: dict[str, Place] = {}
        self._hints: list[str] = []
        self._paragraph: list[str] = []  # the comment that is being read
        self._words: list[str] = []  # the last comment with words
        self._open: tuple[Json, int] | None = None  # schema and column: deeper lines continue
        self._has_begun = False

    def take(self, row: str, number: int) -> None:
        if line := re.match(_LINE, row):
            self._has_begun = True
            self._open = None
            if line[2] == "env" and (variable := re.match(_VARIABLE, line[3])):
                self.variables.append(variable[1])
            elif line[2] == "env":
                place = Place(number, len(line[1]) + 1)
                self.complaints.append(f"@env needs the name of a variable, as in # @env API_KEY! {place}")
            elif not re.match(_OF_SHDOC, line[3]):
                self._has_arguments = True
                self._argument(line[3], Place(number, len(line[1]) + 1))
            return
        text = row.lstrip().lstrip("#")
        indent = len(row) - len(text.lstrip())
        if self._open is not None and text.strip() and indent > self._open[1]:
            schema = self._open[0]
            schema["description"] = f"{schema.get('description', '')} {text.strip()}".strip()
            return
        self._open = None
        if self._has_begun:
            return
        if not row.strip():  # the next comment describes the tool, and this one may be a licence
            self._words = self._paragraph if any(self._paragraph) else self._words
            self._paragraph = []
        elif not re.match(_NO_WORDS, text.strip()):
            self._paragraph.append(text.removeprefix(" "))

    def arguments(self) -> Arguments:
        required = {"required": self._required} if self._required else {}
        schema = {"type": "object", "properties": self.properties, **required, "additionalProperties": False}
        schema = schema if self._has_arguments else {}
        description = "\n".join(self._paragraph if any(self._paragraph) else self._words).strip()
        return Arguments(description, schema, self._places, self.complaints, self._hints, self.variables)

    def _argument(self, rest: str, place: Place) -> None:
        match = re.fullmatch(_ARGUMENT, rest)
        if match is None:
            word = next(iter(rest.split()), "")
            what = f"{word[:60]} is not understood" if re.match(_NAME, word) else "has no valid name"
            self.complaints.append(f"@arg {what} {place}")
            return
        name = match["name"]
        schema = self._schema(match, place)
        other = self._names.setdefault(variable_of(name), name)
        if name in self.properties or other != name:
            trouble = "appears twice" if other == name else f"sets the same variable as {other}"
            self.complaints.append(f"@arg {name} {trouble}, and only the first one is used {place}")
            return
        self.properties[name] = schema
        self._places[name] = place
        self._open = (schema, place.column)
        if match["required"]:
            self._required.append(name)
        if (variable := variable_of(name)) != name.replace("-", "_"):
            self._hints.append(f"@arg {name} sets {variable}, because the shell may use {name} itself {place}")

    def _schema(self, match: re.Match[str], place: Place) -> Json:
        kind = SYNONYMS.get(match["type"], match["type"]) or "string"
        about = f"@arg {match['name']}"
        schema = {key: dict(value) if isinstance(value, dict) else value for key, value in TYPES[kind].items()}
        if text := match["text"].strip():
            schema["description"] = text
        if match["type"] is None and (word := _unknown_type(match["text"], match["default"])):
            meant = _plain_notation(word, match["name"]) or _likely_type(word)
            remedy = f"write {meant}" if meant else f"use {', '.join(TYPES)}"
            self.complaints.append(f"{about} is read as a string, because {word} is not a type; {remedy} {place}")
        problems = (_add_choices(schema, match["choices"], kind), _add_default(schema, match, kind))
        self.complaints.extend(f"{about} {problem} {place}" for problem in problems if problem)
        return schema


def _add_choices(schema: Json, text: str | None, kind: str) -> str:
    """Return what is wrong with the choices, which are left out then."""
    if text is None:
        return ""
    try:
        if kind in ("bool", "json"):
            raise ValueError
        values = [_value(word.strip(), "string" if kind == "list" else kind) for word in text.split("|")]
    except ValueError:
        return f"has choices that are not of type {kind}; they are ignored"
    (schema["items"] if kind == "list" else schema)["enum"] = list(dict.fromkeys(values))
    return ""


def _add_default(schema: Json, match: re.Match[str], kind: str) -> str:
    """Return what is wrong with the default, which is left out then."""
    text = match["default"]
    if text is None or match["required"]:
        return "" if text is None else "is required, so its default is left out"
    try:
        default = _value(text[1:-1] if text[:1] in ("'", '"') else text, kind)
    except ValueError:
        return f"has a default that is not of type {kind}; it is ignored"
    choices = schema.get("items", schema).get("enum")
    if choices is not None and not set(choices).issuperset(default if kind == "list" else [default]):
        return "has a default that is not one of its choices; it is ignored"
    schema["default"] = default
    return ""


def _unknown_type(text: str, default: str | None) -> str:
    """The unknown word in the place of the type; empty if the text just begins there. Behind a default, it is a type
    if it looks like one other than string."""
    word, *others = text.split() or [""]
    if word in _CLEAR_TYPES or _plain_notation(word, ""):
        return word
    if default is not None and not text[1:2].isspace() and _likely_type(word) not in ("", "string"):
        return word
    stands_apart = not others or text.lstrip()[len(word) :].startswith(("  ", "\t"))
    if not stands_apart or not word.isalpha():
        return ""
    is_in_place = not text[1:2].isspace()  # a text is further away from the name
    is_meant = word in LIKELY_TYPES or (is_in_place and (others or _likely_type(word)))
    return word if is_meant else ""


def _plain_notation(word: str, name: str) -> str:
    """What to write in place of a type in the notation of another language; empty for any other word."""
    found = re.fullmatch(_OTHER_NOTATION, word)
    base, many, choices, default = found.groups() if found else ("", None, None, None)
    if choices:
        return f"{name}[{choices.replace(',', '|')}]" if base.lower() == "enum" else ""
    kind = SYNONYMS.get(base, base) if base in TYPES or base in SYNONYMS else LIKELY_TYPES.get(base, "")
    if kind and many:
        return "list" if "str" in word else "json"
    return f"{name}={default} {kind}" if kind and default else kind


def _likely_type(word: str) -> str:
    if word in LIKELY_TYPES:
        return LIKELY_TYPES[word]
    from difflib import get_close_matches  # takes long to import

    close = get_close_matches(word.lower(), (*TYPES, *SYNONYMS), n=1, cutoff=0.75)
    return SYNONYMS.get(close[0], close[0]) if close else ""


def _value(text: str, kind: str) -> Any:
    """The value of a word in the comment. Raises ValueError."""
    if kind == "string":
        return text
    if kind == "list":
        values = jsontext.loads(text.encode()) if text.startswith("[") else text.split(",") if text else []
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError
        return values
    if kind != "json" and not re.fullmatch(_SCALARS[kind], text):
        raise ValueError
    return jsontext.loads(text.encode())
