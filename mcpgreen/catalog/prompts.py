"""Read the prompts of a project: each file below prompts/ is one, and so is a description with `messages` of its own.

A file is a template, unless it is executable and says what runs it: then its output is the prompt. Pictures and sounds
are neither: messages show them.

Rule: one bad description costs one prompt and a warning, never the list.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import A_STRING, AN_OBJECT, Origin, Rule
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.tree_scan import Directory, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.protocol.content import BLOCK_TYPES, ROLES
from mcpgreen.protocol.input import requests
from mcpgreen.text import media

PROGRAM_STARTS = (b"#!", b"\x7fELF")
SHOWN_TYPES = ("image/", "audio/", "video/")
PLACEHOLDERS = ("all", "braces")  # {{name}} and ${name}, or the first alone: a prompt may show shell code


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
    placeholders: str
    input_requests: dict[str, Any]  # questions whose answers become arguments
    definition: dict[str, Any]
    timeout_secs: float | None
    registry_entry: dict[str, Any]


FIELD_RULES = {
    # It is part of the environment of scripts, where a NUL or a lone surrogate cannot be.
    "name": Rule(lambda value: metadata.is_string(value) and value.isprintable(), "one line of printable text"),
    "title": A_STRING,
    "description": A_STRING,
    "role": A_STRING,
    "arguments": Rule(lambda value: isinstance(value, (dict, list)), "an array of arguments or a schema"),
    "inputSchema": AN_OBJECT,
    "messages": Rule(lambda value: isinstance(value, list) and bool(value), "an array of messages"),
    "placeholders": Rule(lambda value: value in PLACEHOLDERS, f"one of {', '.join(PLACEHOLDERS)}"),
    "inputRequests": AN_OBJECT,
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
        *(Loss(f"{project.shown(link.path)}: skipped, it links to a file outside prompts/") for link in tree.links_out),
    ]
    found: list[Prompt] = []
    for directory in tree.directories:
        for file_name in tree.pace.over(_sources_in(directory)):
            try:
                prompt, complaints = _prompt_of(project, directory, file_name)
            except ProjectError as error:
                warnings.append(Loss(f"{project.shown(error.path)}: {error.reason}; the prompt is left out"))
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
            warnings.append(
                Loss(f"{prompt.relative_path}: skipped, {first_path} already provides the prompt {prompt.name}")
            )
    return list(kept.values())


def describe_prompt(origin: Origin, fields: dict[str, Any], *, default_name: str = "") -> Prompt:
    """What the `fields` of a description say. Raises ProjectError for what cannot be served."""
    source, complaints = origin.path, origin.complaints
    fields = metadata.checked(source, fields, FIELD_RULES)
    definition: dict[str, Any] = {"name": fields.get("name") or default_name}
    for key in ("title", "description"):
        if key in fields:
            definition[key] = fields[key]
    arguments, schemas = _arguments(source, fields)
    required = tuple(argument["name"] for argument in arguments if argument.get("required"))
    if arguments:
        definition["arguments"] = arguments
    metadata.decorate(definition, {key: fields[key] for key in ("icons", "_meta") if key in fields}, origin)
    complaints.extend(metadata.likely_typos(fields, KNOWN_FIELDS, ""))
    role = _legal_role(fields.get("role"), complaints)
    if "messages" in fields:
        fields["messages"] = [_checked_message(source, each, complaints) for each in fields["messages"]]
    others = {key: value for key, value in fields.items() if key not in ("icons", "_meta", "path")}
    if schemas:
        others["inputSchema"] = {"type": "object", "properties": schemas, "required": list(required)}
    return Prompt(
        name=definition["name"],
        path=None,
        relative_path="",
        is_program=False,
        role=role,
        required=required,
        schemas=schemas,
        messages=fields.get("messages"),
        placeholders=fields.get("placeholders", PLACEHOLDERS[0]),
        input_requests=_checked_questions(source, fields.get("inputRequests")),
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


def _sources_in(directory: Directory) -> list[str]:
    """The files of a directory that stand for a prompt each: templates, programs, and descriptions without either."""
    names = (name for name in directory.files if not (media.type_by_name(name) or "").startswith(SHOWN_TYPES))
    return metadata.item_sources(names)


def _prompt_of(project: Project, directory: Directory, file_name: str) -> tuple[Prompt, list[str]]:
    path = f"{directory.path}/{file_name}"
    relative_path = path.removeprefix(project.prompts_dir.rstrip("/") + "/")
    if metadata.is_description(file_name):
        return _lonely_prompt(project, path, relative_path)
    runs = is_program(path, directory.files[file_name])
    meta_file = metadata.meta_file_for(file_name, directory.files)
    source = f"{directory.path}/{meta_file}" if meta_file else path
    # A comment in a template is part of its text.
    inline = metadata.read_inline_of(path) if runs and not meta_file else None
    fields = metadata.read_meta_file(source) if meta_file else inline or {}
    origin = Origin(source, project.private, [])
    prompt = describe_prompt(origin, fields, default_name=metadata.stem_of(file_name))
    return with_file(prompt, path, relative_path, is_program=runs), origin.complaints


def _lonely_prompt(project: Project, path: str, relative_path: str) -> tuple[Prompt, list[str]]:
    """A description without a file, which has to bring its messages."""
    default_name = metadata.described_stem(os.path.basename(path))
    origin = Origin(path, project.private, [])
    prompt = describe_prompt(origin, metadata.read_meta_file(path), default_name=default_name)
    if prompt.messages is None:
        raise ProjectError(path, "describes no prompt: no template of that name is beside it, and it has no messages")
    entry = {**prompt.registry_entry, "path": relative_path}
    return prompt._replace(relative_path=relative_path, registry_entry=entry), origin.complaints


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
        if entry["name"] in schemas:
            raise ProjectError(source, f"the argument {entry['name']} stands there twice")
        arguments.append({key: entry[key] for key in ARGUMENT_RULES if key in entry})
        schemas[entry["name"]] = entry.get("schema", entry)
    return arguments, schemas


def _arguments_of_schema(source: str, schema: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    are_names = isinstance(required, list) and all(map(metadata.is_string, required))
    if not isinstance(properties, dict) or not are_names:
        raise ProjectError(source, "arguments must have properties (an object) and required (an array of names)")
    arguments = []
    for name in dict.fromkeys([*properties, *required]):
        about = properties.get(name)
        argument = {"name": name}
        for key in ("title", "description"):
            if isinstance(about, dict) and isinstance(about.get(key), str):
                argument[key] = about[key]
        arguments.append({**argument, "required": name in required})
    return arguments, dict(properties)


def _checked_questions(source: str, asked: dict[str, Any] | None) -> dict[str, Any]:
    if not asked:
        return {}
    fault = requests.fault_of(asked)
    if fault:
        raise ProjectError(source, f"inputRequests cannot be asked: {fault}")
    return asked


def _checked_message(source: str, message: Any, complaints: list[str]) -> dict[str, Any]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        if content["type"] not in BLOCK_TYPES:
            known = ", ".join(BLOCK_TYPES)
            raise ProjectError(source, f"content of the type {metadata.shown(content['type'])}; there are {known}")
    elif not isinstance(content, str):
        raise ProjectError(source, "each of messages needs content: a text, or an object with a type")
    if "role" not in message:
        return dict(message)
    return {**message, "role": _legal_role(message["role"], complaints)}


def _legal_role(given: Any, complaints: list[str]) -> str:
    if given is None or given in ROLES:
        return given or "user"
    complaints.append(f'role is taken as "user": it must be user or assistant, found {metadata.shown(given)}')
    return "user"
