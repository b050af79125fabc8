"""Read a project's prompts: every file below prompts/, and every description with `messages`.

A file is a template, or a program if it is executable and begins with `#!` or as a binary: then its output is the
prompt. Pictures and sounds are no prompts: messages show them.

Rule: one bad description costs one prompt and a warning, never the list.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import A_STRING, AN_OBJECT, Origin, Rule
from mcpgreen.catalog.descriptions.scopes import with_all_scopes
from mcpgreen.catalog.items import Discovery, ItemFile, distinct, leave_out_readme, read_files
from mcpgreen.catalog.tree_scan import Tree
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.protocol.content import CONTENT_TYPES, ROLES
from mcpgreen.protocol.input import requests
from mcpgreen.text import media
from mcpgreen.text.json_types import Json

PROGRAM_STARTS = (b"#!", b"\x7fELF")
SHOWN_TYPES = ("image/", "audio/", "video/")
PLACEHOLDERS = ("all", "braces")  # {{name}} and ${name}, or only {{name}} for a prompt with shell code


class Prompt(NamedTuple):
    """One prompt: the author's own `messages`, or the one message that the template or program at `path` makes."""

    name: str
    role: str
    required: tuple[str, ...]
    schemas: Json  # of the arguments that have one, for completion
    messages: list[Json] | None
    placeholders: str
    input_requests: Json  # elicitations and the like; their results become arguments
    definition: Json
    timeout_secs: float | None
    scopes: Sequence[str]  # that a caller must have, if callers have scopes at all
    registry_entry: Json
    path: str | None = None
    relative_path: str = ""
    is_program: bool = False


FIELD_RULES = {
    **metadata.COMMON_RULES,
    # Scripts get it in an environment variable, which cannot hold a NUL or a lone surrogate.
    "name": Rule(
        lambda value: isinstance(value, str) and value.isprintable(), "one line of printable text", {"type": "string"}
    ),
    "role": A_STRING,
    "arguments": Rule(
        lambda value: isinstance(value, (dict, list)),
        "an array of arguments or a schema",
        {"type": ["array", "object"], "items": {"type": "object", "required": ["name"]}},
    ),
    "messages": Rule(
        lambda value: isinstance(value, list) and bool(value),
        "an array of messages",
        {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["content"]}},
    ),
    "placeholders": metadata.one_of(PLACEHOLDERS),
    "inputRequests": AN_OBJECT,
    "timeoutSecs": metadata.A_DURATION,
    "scopes": metadata.SCOPES,
}
KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path", "metadata"}
ARGUMENT_RULES = {"name": A_STRING, "title": A_STRING, "description": A_STRING, "required": metadata.A_BOOLEAN}


def discover_prompts(project: Project, tree: Tree) -> Discovery:
    """Read every prompt in a tree of prompts/, sorted by name."""
    found, warnings, hints = read_files(project, tree, _sources_in, _prompt_of, "the prompt")
    by_name = sorted(found, key=lambda prompt: (prompt.name, prompt.relative_path))
    kept, losses = distinct(by_name, "name", "provides the prompt")
    return Discovery(kept, [*tree.warnings_with_links(project, "prompts"), *warnings, *losses], hints)


def describe_prompt(origin: Origin, fields: Json, *, default_name: str = "") -> Prompt:
    """The prompt that the `fields` describe. Raises ProjectError if it cannot be served."""
    source, complaints = origin.path, origin.complaints
    fields = metadata.checked(source, fields, FIELD_RULES)
    named = {"name": fields.get("name") or default_name}
    without_annotations = {key: value for key, value in fields.items() if key != "annotations"}
    definition = metadata.definition_of(origin, named, without_annotations, plain=(), known=KNOWN_FIELDS)
    arguments, schemas = _arguments(source, fields)
    required = tuple(argument["name"] for argument in arguments if argument.get("required"))
    if arguments:
        definition["arguments"] = arguments
    role = _legal_role(fields.get("role"), complaints)
    if "messages" in fields:
        fields["messages"] = [_checked_message(source, each, complaints) for each in fields["messages"]]
    input_requests = fields.get("inputRequests") or {}
    if input_requests and (fault := requests.fault_of(input_requests)):
        raise ProjectError(source, f"inputRequests is invalid: {fault}")
    others = {key: value for key, value in fields.items() if key not in ("icons", "_meta", "path")}
    if schemas:
        others["inputSchema"] = {"type": "object", "properties": schemas, "required": list(required)}
    return Prompt(
        name=definition["name"],
        role=role,
        required=required,
        schemas=schemas,
        messages=fields.get("messages"),
        placeholders=fields.get("placeholders", PLACEHOLDERS[0]),
        input_requests=input_requests,
        definition=definition,
        timeout_secs=fields.get("timeoutSecs"),
        scopes=fields.get("scopes", ()),
        registry_entry={"description": "", **others, **definition, "role": role},
    )


def with_file(prompt: Prompt, path: str, relative_path: str, *, is_program: bool) -> Prompt:
    entry = {**prompt.registry_entry, "path": relative_path}
    return prompt._replace(path=path, relative_path=relative_path, is_program=is_program, registry_entry=entry)


def is_program(path: str, status: os.stat_result) -> bool:
    """Tell whether a file is a program. The bit is not enough: on some file systems every file is executable."""
    if not status.st_mode & metadata.EXECUTABLE_BITS:
        return False
    try:
        return metadata.read_start(path, 4).startswith(PROGRAM_STARTS)
    except OSError:
        return True  # executable and not readable: it can only be run


def _sources_in(names: Iterable[str]) -> list[str]:
    """The files of a directory that are prompts: templates, programs, and descriptions without either."""
    return metadata.item_sources(name for name in names if not (media.type_by_name(name) or "").startswith(SHOWN_TYPES))


def _prompt_of(file: ItemFile) -> Prompt | None:
    if leave_out_readme(file, "prompt"):
        return None
    runs = not file.is_description and is_program(file.path, file.directory.files[file.name])
    # A comment in a template is part of its text, but scopes count wherever they are.
    head = b"" if file.is_description else metadata.head_of(file.path) or b""
    inline = metadata.read_inline(file.path, head) if runs and not file.has_description else None
    fields = metadata.read_meta_file(file.origin.path) if file.has_description else inline or {}
    fields = with_all_scopes(file.path, head, fields, is_prose=not runs)
    prompt = describe_prompt(file.origin, fields, default_name=metadata.described_stem(file.name))
    if file.is_description and prompt.messages is None:
        lack = "there is no template with the same name next to it, and it has no messages"
        raise ProjectError(file.path, lack)
    relative_path = file.path.removeprefix(file.project.prompts_dir.rstrip("/") + "/")
    prompt = with_file(prompt, file.path, relative_path, is_program=runs)
    return prompt._replace(path=None) if file.is_description else prompt


def _arguments(source: str, fields: Json) -> tuple[list[Json], Json]:
    """The arguments as they are listed, and their schemas by name."""
    given: object = fields["arguments"] if "arguments" in fields else fields.get("inputSchema", [])
    if isinstance(given, dict):
        return _arguments_of_schema(source, given)
    assert isinstance(given, list), "`FIELD_RULES` admits an array or an object"
    arguments: list[Json] = []
    schemas: Json = {}
    for entry in given:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
            found = metadata.shown(entry)
            raise ProjectError(source, f"every argument must be an object with a name, found {found}")
        entry = metadata.checked(source, entry, ARGUMENT_RULES)
        if entry["name"] in schemas:
            raise ProjectError(source, f"the argument {entry['name']} appears twice")
        arguments.append({key: entry[key] for key in ARGUMENT_RULES if key in entry})
        schemas[entry["name"]] = entry.get("schema", entry)
    return arguments, schemas


def _arguments_of_schema(source: str, schema: Json) -> tuple[list[Json], Json]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    are_names = isinstance(required, list) and all(isinstance(name, str) for name in required)
    if not isinstance(properties, dict) or not are_names:
        raise ProjectError(source, "arguments must have properties (an object) and required (an array of names)")
    arguments = []
    for name in dict.fromkeys([*properties, *required]):
        about = properties[name] if isinstance(properties.get(name), dict) else {}
        texts = {key: about[key] for key in ("title", "description") if isinstance(about.get(key), str)}
        arguments.append({"name": name, **texts, "required": name in required})
    return arguments, dict(properties)


def _checked_message(source: str, message: Any, complaints: list[str]) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        if content["type"] not in CONTENT_TYPES:
            known = ", ".join(CONTENT_TYPES)
            raise ProjectError(source, f"content type {metadata.shown(content['type'])} is unknown; use {known}")
    elif not isinstance(content, str):
        raise ProjectError(source, "every message needs content: a string, or an object with a type")
    return {**message, "role": _legal_role(message["role"], complaints)} if "role" in message else dict(message)


def _legal_role(given: object, complaints: list[str]) -> str:
    if isinstance(given, str) and given in ROLES:
        return given
    if given is not None:
        complaints.append(f"role must be user or assistant, found {metadata.shown(given)}; it is treated as user")
    return "user"
