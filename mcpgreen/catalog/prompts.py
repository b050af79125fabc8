"""Read the prompts of a project: each file below prompts/ is one, and so is a description with `messages` of its own.

A file is a template, unless it is executable and says what runs it: then its output is the prompt.

Rule: one bad description costs one prompt and a warning, never the list.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mcpgreen.catalog import metadata
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.metadata import A_STRING, AN_OBJECT, Rule
from mcpgreen.catalog.project import Project
from mcpgreen.catalog.survey import Directory, Tree
from mcpgreen.errors import ProjectError

ROLES = ("user", "assistant")
PROGRAM_STARTS = (b"#!", b"\x7fELF")


class Prompt(NamedTuple):
    """One prompt. `path` is its template or program; `messages` are the author's own, else the file is the only one."""

    name: str
    path: str | None
    relative_path: str
    is_program: bool
    role: str
    required: tuple[str, ...]
    schemas: dict[str, Any]  # of the arguments that have one, for completion
    messages: list[dict[str, Any]] | None
    definition: dict[str, Any]
    timeout_secs: float | None
    registry_entry: dict[str, Any]


FIELD_RULES = {
    "name": A_STRING,
    "title": A_STRING,
    "description": A_STRING,
    "role": A_STRING,
    "arguments": Rule(lambda value: isinstance(value, (dict, list)), "an array of arguments or a schema"),
    "inputSchema": AN_OBJECT,
    "messages": Rule(lambda value: isinstance(value, list) and bool(value), "an array of messages"),
    "timeoutSecs": metadata.A_DURATION,
    "annotations": AN_OBJECT,
    "_meta": AN_OBJECT,
}
KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path", "metadata"}
ARGUMENT_RULES = {"name": A_STRING, "title": A_STRING, "description": A_STRING, "required": metadata.A_BOOLEAN}


def discover_prompts(project: Project, tree: Tree) -> Discovery:
    """Read every prompt that the walk through prompts/ saw, sorted by name."""
    warnings = [
        *tree.warnings,
        *(f"{project.shown(link.path)}: skipped, it links to a file outside prompts/" for link in tree.links_out),
    ]
    found: list[Prompt] = []
    for directory in tree.directories:
        names = directory.files
        data = [name for name in names if not metadata.is_description(name)]
        sources = [name for name in data if not metadata.is_beside_the_point(name, names)]
        for file_name in sources + metadata.lonely_descriptions(names):
            try:
                prompt, complaints = _prompt_of(project, directory, file_name)
            except ProjectError as error:
                warnings.append(f"{project.shown(error.path)}: {error.reason}; the prompt is left out")
                continue
            found.append(prompt)
            warnings.extend(f"{project.shown(directory.path)}/{file_name}: {complaint}" for complaint in complaints)
    return Discovery(distinct_prompts(found, warnings), warnings)


def distinct_prompts(found: list[Prompt], warnings: list[str]) -> list[Prompt]:
    """The first of each name: clients get a prompt by it."""
    kept: dict[str, Prompt] = {}
    for prompt in sorted(found, key=lambda prompt: (prompt.name, prompt.relative_path)):
        first = kept.setdefault(prompt.name, prompt)
        if first is not prompt:
            first_path = first.relative_path
            warnings.append(f"{prompt.relative_path}: skipped, {first_path} already provides the prompt {prompt.name}")
    return list(kept.values())


def describe_prompt(source: str, fields: dict[str, Any], *, default_name: str, complaints: list[str]) -> Prompt:
    """What the `fields` that were read from `source` say. Raises ProjectError for what cannot be served."""
    fields = metadata.checked(source, fields, FIELD_RULES)
    definition: dict[str, Any] = {"name": fields.get("name") or default_name}
    for key in ("title", "description"):
        if key in fields:
            definition[key] = fields[key]
    arguments, schemas = _arguments(source, fields)
    if arguments:
        definition["arguments"] = arguments
    metadata.decorate(
        definition,
        {key: fields[key] for key in ("icons", "_meta") if key in fields},
        os.path.dirname(source),
        complaints,
    )
    complaints.extend(metadata.likely_typos(fields, KNOWN_FIELDS, ""))
    role = fields.get("role") or "user"
    if role not in ROLES:
        complaints.append(f'role is taken as "user": it must be user or assistant, found {metadata.shown(role)}')
        role = "user"
    if "messages" in fields:
        _check_messages(source, fields["messages"])
    others = {key: value for key, value in fields.items() if key not in ("icons", "_meta", "path")}
    return Prompt(
        name=definition["name"],
        path=None,
        relative_path="",
        is_program=False,
        role=role,
        required=tuple(argument["name"] for argument in arguments if argument.get("required")),
        schemas=schemas,
        messages=fields.get("messages"),
        definition=definition,
        timeout_secs=fields.get("timeoutSecs"),
        registry_entry={"description": "", **others, **definition, "role": role},
    )


def with_file(prompt: Prompt, path: str, relative_path: str, *, is_program: bool) -> Prompt:
    entry = {**prompt.registry_entry, "path": relative_path}
    return prompt._replace(path=path, relative_path=relative_path, is_program=is_program, registry_entry=entry)


def is_program(path: str, status: os.stat_result) -> bool:
    """The bit alone does not make a program: on some file systems every file has it."""
    if not status.st_mode & metadata.EXECUTABLE_BITS:
        return False
    try:
        return metadata.read_start(path, 4).startswith(PROGRAM_STARTS)
    except OSError:
        return True  # executable and not readable: it can only be run


def _prompt_of(project: Project, directory: Directory, file_name: str) -> tuple[Prompt, list[str]]:
    path = f"{directory.path}/{file_name}"
    relative_path = path.removeprefix(project.prompts_dir.rstrip("/") + "/")
    is_lonely = metadata.is_description(file_name)
    meta_file = file_name if is_lonely else metadata.meta_file_for(file_name, directory.files)
    complaints: list[str] = []
    if not meta_file:
        fields = metadata.read_inline_of(path) if is_program(path, directory.files[file_name]) else None
        prompt = describe_prompt(path, fields or {}, default_name=metadata.stem_of(file_name), complaints=complaints)
    else:
        source = f"{directory.path}/{meta_file}"
        fields = metadata.read_meta_file(source)
        default_name = metadata.described_stem(file_name) if is_lonely else metadata.stem_of(file_name)
        prompt = describe_prompt(source, fields, default_name=default_name, complaints=complaints)
    if is_lonely:
        if prompt.messages is None:
            raise ProjectError(
                path, "describes no prompt: no template of that name is beside it, and it has no messages"
            )
        return prompt._replace(relative_path=relative_path), complaints
    runs = is_program(path, directory.files[file_name])
    return with_file(prompt, path, relative_path, is_program=runs), complaints


def _arguments(source: str, fields: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The arguments as they are listed, and the schemas behind them."""
    given = fields.get("arguments", fields.get("inputSchema", []))
    if isinstance(given, dict):
        return _arguments_of_schema(source, given)
    arguments: list[dict[str, Any]] = []
    schemas: dict[str, Any] = {}
    for entry in given:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"]:
            raise ProjectError(
                source, f"each of arguments must be an object with a name, found {metadata.shown(entry)}"
            )
        entry = metadata.checked(source, entry, ARGUMENT_RULES)
        arguments.append({key: entry[key] for key in ARGUMENT_RULES if key in entry})
        schemas[entry["name"]] = entry.get("schema", entry)
    return arguments, schemas


def _arguments_of_schema(source: str, schema: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise ProjectError(source, "arguments must have properties (an object) and required (an array)")
    arguments = []
    for name, about in properties.items():
        about = about if isinstance(about, dict) else {}
        argument = {"name": name}
        for key in ("title", "description"):
            if isinstance(about.get(key), str):
                argument[key] = about[key]
        arguments.append({**argument, "required": name in required})
    return arguments, dict(properties)


def _check_messages(source: str, messages: list[Any]) -> None:
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, str) and not (isinstance(content, dict) and isinstance(content.get("type"), str)):
            raise ProjectError(source, "each of messages needs content: a text, or an object with a type")
        if message.get("role", "user") not in ROLES:
            raise ProjectError(source, "the role of a message must be user or assistant")
