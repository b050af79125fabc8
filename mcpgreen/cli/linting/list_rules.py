"""What is wrong with lists as a whole: too long, or with items that cannot be told apart. Part of `lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from mcpgreen.cli.checking.findings import Finding
from mcpgreen.cli.checking.reading.sources import Source
from mcpgreen.cli.linting.tokens import tokens_in, tokens_of
from mcpgreen.project.project import Project
from mcpgreen.text import jsontext

MAX_TOOLS = 128  # more are refused by OpenAI and VS Code
MAX_LIST_TOKENS = 20_000
MAX_LIST_BYTES = 4 << 20  # clients close a connection with a line of 10 MiB
MAX_INSTRUCTION_CHARS = 2048
_INSTRUCTIONS = "server.instructions.md"


def server_findings(project: Project) -> Iterator[Finding]:
    text = project.instructions() or ""
    if len(text) > MAX_INSTRUCTION_CHARS:
        shown = project.shown(project.server_file(_INSTRUCTIONS))
        sentence = f"{shown}: {len(text)} characters, about {tokens_in(text)} tokens; some clients cut them at 2048"
        yield Finding("warning", "server", sentence, "instructions-long", "shorten it to what every call needs", shown)


def findings(project: Project, kind: str, items: Sequence[tuple[Any, Source]]) -> Iterator[Finding]:
    yield from _alike(project, kind, items)
    size = sum(len(jsontext.dumps(item.definition)) for item, _ in items)
    if size > MAX_LIST_BYTES:
        sentence = f"the list of {kind} has {size >> 20} MiB; clients close the connection at 10"
        yield Finding("warning", kind, sentence, "list-large", "shorten descriptions, schemas and icons")
    if kind != "tools" or not items:
        return
    tokens = sum(tokens_of(item.definition) for item, _ in items)
    if len(items) > MAX_TOOLS:
        sentence = f"there are {len(items)} tools; providers accept {MAX_TOOLS}"
        yield Finding("warning", kind, sentence, "list-long", "offer fewer, or make several projects of it")
    if tokens > MAX_LIST_TOKENS:
        sentence = f"a model reads about {tokens} tokens for the tools in every conversation"
        yield Finding("warning", kind, sentence, "list-tokens", "offer fewer tools, with shorter texts", tokens=tokens)
    else:
        sentence = f"all tools: about {tokens} tokens"
        yield Finding("ok", kind, sentence, "tokens", tokens=tokens)


def _alike(project: Project, kind: str, items: Sequence[tuple[Any, Source]]) -> Iterator[Finding]:
    if kind != "tools":
        return
    names: dict[str, str] = {}
    texts: dict[str, str] = {}
    for item, source in items:
        file = project.shown(source.path) if source.path else None
        plain = re.sub(r"[^a-z0-9]", "_", item.name.lower())
        first = names.setdefault(plain, item.name)
        if first != item.name:
            sentence = f"tool {item.name}: some clients cannot tell it from {first}"
            fix = "give one of the two a name that differs in letters"
            yield Finding("warning", kind, sentence, "names-alike", fix, file, source.position("name"))
        description = (item.definition.get("description") or "").strip()
        first = texts.setdefault(description, item.name)
        if description and first != item.name:
            sentence = f"tool {item.name}: it has the description of {first}, so a model cannot choose between them"
            fix = "say in each what the other does not do"
            yield Finding("warning", kind, sentence, "texts-alike", fix, file, source.position("description"))
