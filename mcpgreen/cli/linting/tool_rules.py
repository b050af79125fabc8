"""What is wrong with a tool's name, texts and annotations, for clients and models. Part of `lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpgreen.catalog.tools import Tool
from mcpgreen.cli.checking.findings import Problem
from mcpgreen.cli.checking.reading.sources import Source
from mcpgreen.cli.linting.tokens import tokens_of
from mcpgreen.cli.making.names import SAFE_NAME

# Claude Code calls a tool mcp__SERVER__TOOL, and its provider takes no more than this of a name.
MAX_NAME_CHARS = 64
FULL_NAME = "mcp__{server}__{tool}"
MAX_DESCRIPTION_CHARS = 1024  # more is refused for functions by OpenAI
MAX_TOKENS = 2000
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_CHANGES = re.compile(r"^(delete|remove|drop|destroy|purge|write|update|create|insert|rm|kill)(?=[_-]|$)")


def problems(tool: Tool, source: Source, *, server_name: str) -> Iterator[Problem]:
    yield from _name(tool, source, server_name)
    yield from _texts(tool, source)
    yield from _annotations(tool, source)
    tokens = tokens_of(tool.definition)
    if tokens > MAX_TOKENS:
        sentence = f"a model reads about {tokens} tokens for it in every conversation"
        yield source.warning("tokens-many", sentence, f"shorten texts and schema to less than {MAX_TOKENS} tokens")


def _name(tool: Tool, source: Source, server_name: str) -> Iterator[Problem]:
    full = FULL_NAME.format(server=_NOT_IN_NAMES.sub("_", server_name), tool=tool.name)
    if SAFE_NAME.fullmatch(tool.name) and len(full) > MAX_NAME_CHARS:
        sentence = f"with its server it is called {full}, which is more than {MAX_NAME_CHARS} characters"
        yield source.warning("name-long", sentence, "give the server or the tool a shorter name", "name")
    if tool.name[:1] in "0123456789-" and SAFE_NAME.fullmatch(tool.name):
        sentence = "Gemini refuses names that do not begin with a letter or _"
        yield source.warning("name-start", sentence, "begin the name with a letter", "name")


def _texts(tool: Tool, source: Source) -> Iterator[Problem]:
    description = tool.definition.get("description") or ""
    if len(description) > MAX_DESCRIPTION_CHARS:
        sentence = f"its description has {len(description)} characters; some clients refuse or cut more than 1024"
        yield source.warning(
            "description-long", sentence, "shorten it, or move details to the arguments", "description"
        )
    elif description and _plain(description) == _plain(tool.name):
        sentence = "its description says no more than its name"
        yield source.warning("description-short", sentence, "say what it does, and when to use it", "description")
    titles = (tool.definition.get("title"), (tool.definition.get("annotations") or {}).get("title"))
    if titles[0] and titles[1] and titles[0] != titles[1]:
        sentence = "title and annotations.title differ, and clients show the one or the other"
        yield source.warning("title", sentence, "remove annotations.title", "annotations", "title")


def _annotations(tool: Tool, source: Source) -> Iterator[Problem]:
    hints = tool.definition.get("annotations") or {}
    if not hints.get("readOnlyHint"):
        return
    if hints.get("destructiveHint"):
        sentence = "readOnlyHint and destructiveHint contradict each other: what only reads destroys nothing"
        yield source.warning("annotations", sentence, "remove the one that is wrong", "annotations", "destructiveHint")
    if verb := _CHANGES.match(tool.name):
        sentence = f"it is called {tool.name}, but readOnlyHint says that it changes nothing, so nobody is asked before"
        fix = f"remove readOnlyHint if it does {verb[1]}, else give it another name"
        yield source.warning("annotations", sentence, fix, "annotations", "readOnlyHint")


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
