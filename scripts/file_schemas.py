"""The JSON Schemas of the files that a project consists of, made from the rules by which the files are read.

Rule: a schema knows the fields that the reader knows, and forbids only what the reader refuses: other fields are the
author's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcpgreen.catalog import prompts, resources, tools
from mcpgreen.catalog.apps import resources as pages
from mcpgreen.catalog.descriptions.metadata import ANNOTATION_RULES, Rule
from mcpgreen.catalog.manual.registration import KINDS, REQUIRED_FIELDS
from mcpgreen.cli.schema import FILES
from mcpgreen.project.project import TEXT_FIELDS

Json = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"  # the one that editors know best
SCHEMA_OF_SCHEMAS = {"$ref": DIALECT}
ICONS: Json = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "src": {"type": "string", "description": "A URL, a data: URI, or a file next to this one, up to 64 KiB"},
            "mimeType": {"type": "string"},
            "sizes": {"type": ["array", "string"], "items": {"type": "string"}},
            "theme": {"enum": ["light", "dark"]},
        },
        "required": ["src"],
    },
}
TEXTS = {
    "$schema": "The JSON Schema for this file, for editors",
    "name": "The name that clients use",
    "title": "The name that people see",
    "description": "Tells the model what it does, and when to use it",
    "inputSchema": "JSON Schema of the arguments; its root must be an object",
    "arguments": "The arguments: for a tool or a template the same as inputSchema, for a prompt an array",
    "outputSchema": "JSON Schema of the structured content",
    "annotations": "Hints for clients",
    "icons": "Icons that clients can show",
    "timeoutSecs": "The timeout of a call, in seconds",
    "timeoutHint": "What to tell the model after a timeout",
    "progressExtendsTimeout": "Whether each progress report restarts the timeout",
    "maxTimeoutSecs": "The maximum duration of a call, including progress, in seconds",
    "strictArguments": "Whether arguments must match inputSchema exactly, without any conversion",
    "maxConcurrent": "How many calls to this tool can run at the same time",
    "needs": "The capabilities that a client must have",
    "scopes": "The scopes that the caller's token needs, if callers have tokens",
    "warm": "Whether a Python script can be forked from a running Python, or the modules to preload there",
    "stays": "Whether the process keeps running between calls: for the server, or for each session",
    "task": "How calls become tasks, for clients with tasks: never, auto (after a while), always or required",
    "taskBegins": "Where a task begins: with the call, or where the script says so",
    "taskAfterSecs": "After how many seconds a call becomes a task, with task: auto",
    "taskTimeoutSecs": "How long a task may take, in seconds, if that is more than timeoutSecs",
    "taskKeepSecs": "How long a task is kept after its end, in seconds",
    "taskSurvivesClient": "Whether a task continues when its client is gone",
    "run_on": "Labels of the workers that may run the tool, if there is a fleet; any: each of them",
    "retries": "How often a call is run again if the worker that ran it was lost",
    "idempotent": "Whether a task may be run again if the server crashed meanwhile",
    "process": "The process that it shares with other resident tools that are links to the same file",
    "env": "The environment variables that the tool gets from the server; a ! marks a required one",
    "interaction": "Whether a call that waits for an answer can be run again",
    "uri": "The URI of the resource",
    "uriTemplate": "The URI template, as in notes://{name}",
    "mimeType": "The MIME type of the content",
    "size": "The size of the content, in bytes",
    "provider": "The script in providers/ that reads it, if the URI scheme does not name it",
    "path": "The file of a registered item",
    "messages": "The messages of the prompt, instead of a file",
    "placeholders": "Which placeholders to fill in: {{name}} and ${name}, or only {{name}}",
    "inputRequests": "What to ask the user before the prompt is built",
    "role": "The role of the text: user or assistant",
    "entrypoint": "The HTML file",
    "template": "The template of the page, if there is no HTML file",
    "config": "The values for the template",
    "meta": "What the page can access and request",
    "version": "The version",
    "websiteUrl": "A page with more information",
    "_meta": "Passed on to clients",
}
SCHEMAS_IN = ("inputSchema", "outputSchema")


def text_of(kind: str) -> str:
    return json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n"


def schema_of(kind: str) -> Json:
    head = {"$schema": DIALECT, "title": FILES[kind]}
    if kind == "register":
        return {**head, **_register()}
    if kind == "server":
        rules = {name: {"type": "string"} for name in TEXT_FIELDS}
        return {**head, **_object({**rules, "icons": ICONS}), "required": ["name"]}
    return {**head, **_object(_fields(kind))}


def _fields(kind: str) -> dict[str, Json]:
    module: Mapping[str, tuple[Mapping[str, Rule], frozenset[str]]] = {
        "tool": (tools.FIELD_RULES, tools.KNOWN_FIELDS),
        "prompt": (prompts.FIELD_RULES, prompts.KNOWN_FIELDS),
        "resource": (resources.FIELD_RULES, resources.KNOWN_FIELDS),
        "app": (pages.FIELD_RULES, frozenset(pages.FIELD_RULES)),
    }
    rules, known = module[kind]
    fields: dict[str, Json] = {name: dict(rule.schema) for name, rule in rules.items()}
    fields |= {name: {} for name in sorted(known - fields.keys())}
    if "icons" in fields:
        fields["icons"] = ICONS
    if "annotations" in fields:
        hints: dict[str, Json] = {name: dict(rule.schema) for name, rule in ANNOTATION_RULES.items()}
        fields["annotations"] = {"type": "object", "properties": hints}
    if kind == "tool":
        for name in SCHEMAS_IN:
            fields[name] = {**fields[name], "allOf": [SCHEMA_OF_SCHEMAS]}
    if kind == "app":
        members: dict[str, Json] = {name: dict(rule.schema) for name, rule in pages.META_RULES.items()}
        fields["meta"] = {"type": "object", "properties": members}
    return fields


def _register() -> Json:
    kind_of = {"tools": "tool", "resources": "resource", "resourceTemplates": "resource", "prompts": "prompt"}
    completion: dict[str, Json] = {"name": {"type": "string"}, "path": {"type": "string"}}
    completion["timeoutSecs"] = dict(tools.FIELD_RULES["timeoutSecs"].schema)
    fields: dict[str, Json] = {"version": {"const": 1}, "_meta": {"type": "object"}}
    for name in KINDS:
        members = _fields(kind_of[name]) if name in kind_of else completion
        item = {"type": "object", "properties": _described(members), "required": list(REQUIRED_FIELDS[name])}
        fields[name] = {"type": ["array", "null"], "items": item}
    return {**_object(fields), "required": ["version"], "additionalProperties": False}


def _object(fields: Mapping[str, Json]) -> Json:
    return {"type": "object", "properties": _described({"$schema": {"type": "string"}, **fields})}


def _described(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {
        name: {**schema, "description": TEXTS[name]} if name in TEXTS else dict(schema)
        for name, schema in fields.items()
    }
