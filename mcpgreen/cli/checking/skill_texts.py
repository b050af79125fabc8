"""What `lint` looks for in the texts of a skill: links that lead nowhere, and tools that the project does not have."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from urllib.parse import unquote

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.skills import MAIN_FILE, Skill, uri_of
from mcpgreen.cli.checking.findings import Position, Problem
from mcpgreen.cli.output import did_you_mean
from mcpgreen.text.uris import scheme_of

MAX_TEXT_BYTES = 1 << 20  # of each file; the rest is not read
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^()\s<>]+)")
_MENTION = re.compile(r"\bthe\s+tool\s+`([^`\s]+)`", re.IGNORECASE)
# A name with a capital, such as Bash(git:*), is that of a tool of the client.
_ALLOWED = re.compile(r"(?:^|[\s,])([^\sA-Z,(][^\s,(]*)(?=[\s,]|$)")


def skill_problems(skill: Skill, tools: Collection[str]) -> Iterator[Problem]:
    """Yield what is wrong with the texts of a skill. `tools` are the names of all tools of the project."""
    for name, file in skill.files.items():
        if file.mime_type == "text/markdown" and file.path is not None:
            with suppress(OSError):
                text = metadata.read_start(file.path, MAX_TEXT_BYTES).decode("utf-8", "replace")
                yield from _link_problems(skill, name, file.path, text)
                if name == MAIN_FILE:
                    yield from _tool_problems(skill, text, tools)


def _link_problems(skill: Skill, file: str, path: str, text: str) -> Iterator[Problem]:
    uris = {*skill.folders, *(each.uri for each in skill.files.values())}
    without_code = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for link in _LINK.finditer(without_code):
        target = unquote(link[1].partition("#")[0].partition("?")[0])
        place = os.path.normpath(os.path.join(os.path.dirname(file), target))
        if target and not scheme_of(link[1]) and uri_of(skill.name, "" if place == "." else place) not in uris:
            sentence = f"{file} links to {link[1]}, which the skill does not have"
            position = Position(text.count("\n", 0, link.start()) + 1)
            yield Problem("warning", "skill-link", sentence, "add that file, or correct the link", path, position)


def _tool_problems(skill: Skill, text: str, tools: Collection[str]) -> Iterator[Problem]:
    allowed = skill.definition["frontmatter"].get("allowed-tools", "")
    listed = " ".join(map(str, allowed)) if isinstance(allowed, list) else str(allowed)
    for name in dict.fromkeys([*_ALLOWED.findall(listed), *_MENTION.findall(text)]):
        if name not in tools:
            sentence = f"it mentions the tool {name}, which the project does not have{did_you_mean(name, list(tools))}"
            place = text.find(name)
            position = Position(text.count("\n", 0, place) + 1) if place >= 0 else None
            yield Problem("warning", "skill-tool", sentence, "correct the name, or add the tool", skill.path, position)
