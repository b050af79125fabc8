"""What is wrong with prompts, templates and icons, for clients and people. Part of `lint`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpgreen.catalog.prompts import Prompt
from mcpgreen.catalog.resources import ResourceTemplate
from mcpgreen.cli.checking.findings import Problem
from mcpgreen.cli.checking.reading.sources import Source
from mcpgreen.cli.making.names import SAFE_NAME

MAX_ICON_CHARS = 96 * 1024
ICON_SIZE = re.compile(r"\d+x\d+|any")
MIME_TYPE = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+(\s*;.*)?", re.DOTALL)
# By its second label: io.mcp/x is reserved, com.example.mcp/x is not.
RESERVED_PREFIX = re.compile(r"[A-Za-z0-9-]+\.(modelcontextprotocol|mcp)(\.[A-Za-z0-9.-]+)?/")


def prompt_problems(prompt: Prompt, source: Source) -> Iterator[Problem]:
    if not SAFE_NAME.fullmatch(prompt.name):
        sentence = "clients make a command of its name, and take only up to 64 of A-Z a-z 0-9 _ -"
        yield source.warning("prompt-name", sentence, "give it such a name", "name")
    if not prompt.definition.get("description"):
        sentence = "it has no description, so people do not know what it is for"
        yield source.warning("prompt-description", sentence, "add a description")
    is_list = isinstance(source.fields.get("arguments"), list)
    for index, argument in enumerate(prompt.definition.get("arguments", ())):
        if not argument.get("description"):
            sentence = f"its argument {argument['name']} has no description, so people do not know what to type"
            way = ("arguments", index) if is_list else ("arguments", "properties", argument["name"])
            yield source.warning("argument-description", sentence, "add a description", *way)


def template_problems(template: ResourceTemplate, source: Source) -> Iterator[Problem]:
    if not template.definition.get("description"):
        sentence = "it has no description, so nobody knows what its variables may be"
        yield source.warning("template-description", sentence, "add a description that explains the variables")


def common_problems(item: Any, source: Source) -> Iterator[Problem]:
    """What any item may have."""
    yield from icon_problems(item, source)
    for key in item.definition.get("_meta") or {}:
        if RESERVED_PREFIX.match(key):
            sentence = f"_meta.{key} has a prefix that is reserved for the protocol"
            yield source.warning("meta-prefix", sentence, "use the name of a domain of your own", "_meta", key)
    mime_type = item.definition.get("mimeType")
    if mime_type is not None and not MIME_TYPE.fullmatch(mime_type):
        sentence = f"mimeType {mime_type[:80]} is none, and clients do not know how to show it"
        yield source.warning("mime-type", sentence, "write type/subtype, as in text/plain", "mimeType")


def icon_problems(item: Any, source: Source) -> Iterator[Problem]:
    for index, icon in enumerate(item.definition.get("icons") or ()):
        src = str(icon.get("src", ""))
        if src.lower().startswith("http:"):
            sentence = "an icon has an http: URL, which clients do not load"
            fix = "use https:, or a file beside the description"
            yield source.warning("icon-url", sentence, fix, "icons", index, "src")
        elif len(src) > MAX_ICON_CHARS:
            sentence = "an icon is larger than 64 KiB, and every list repeats it"
            yield source.warning("icon-large", sentence, "use a smaller picture", "icons", index, "src")
        for size in icon.get("sizes") or ():
            if not ICON_SIZE.fullmatch(size):
                sentence = f"an icon has the size {size[:40]}, which clients do not understand"
                yield source.warning("icon-size", sentence, "write WxH, as in 48x48, or any", "icons", index, "sizes")
