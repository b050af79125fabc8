"""The targets of a Makefile, with what is written about them. Its text is read; nothing of it is evaluated."""

from __future__ import annotations

import os
import re

from mcpgreen.cli.wrapping.task_files import Parameter, Runner, Task, place_of, text_of

USUAL_NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_VARIABLES = 20  # of a target

RULE = re.compile(r"^([^\s#:=][^:=#]{0,500}?)\s*::?(?![=:])([^\n]{0,4000})$")
ASSIGNMENT = re.compile(r"^\s*(?:export\s+|override\s+|private\s+)*[A-Za-z_][\w.-]*\s*(?:[:?+!]{0,3}=)")
OVERRIDABLE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w{0,60})\s*\?=\s*([^#\n]{0,500})(?:#+\s*(.{0,500}))?$")
TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,100}")
REFERENCE = re.compile(r"\$[({]([A-Za-z_]\w{0,60})[)}]")


def runner_for(path: str, root: str) -> Runner:
    directory, name = place_of(path, root), os.path.basename(path)
    words = ["make", *(["-C", directory] if directory else []), *(["-f", name] if name not in USUAL_NAMES else [])]
    return Runner("make", tuple(words))


def targets_in(path: str) -> list[Task]:
    """What `make NAME` can be told to do: words, and files that are declared phony or have a `##`."""
    lines = text_of(path).replace("\\\n", " ").split("\n")
    texts: dict[str, str] = {}
    recipes: dict[str, list[str]] = {}
    phony: set[str] = set()
    documented: set[str] = set()
    variables: dict[str, str] = {}
    comment: list[str] = []
    current: list[str] = []
    is_defining = False
    for line in lines:
        if re.match(r"\s*(define|endef)\b", line):
            is_defining = "define" in line.split()[:1]
            continue
        if is_defining:
            continue
        if line.startswith("\t"):
            for name in current:
                recipes[name].append(line)
            continue
        if line.startswith("#"):
            comment.append(line.lstrip("#! ").strip())
            continue
        if found := OVERRIDABLE.match(line):
            default = found[2].strip()
            variables.setdefault(
                found[1], found[3] or (f"{default} by default." if default and "$" not in default else "")
            )
        rule = RULE.match(line)
        if rule and not ASSIGNMENT.match(rule[2]) and not ASSIGNMENT.match(line):
            names = rule[1].split()
            needs, _, text = rule[2].partition("##")
            if names == [".PHONY"]:
                phony.update(needs.split())
            current = [name for name in names if TARGET.fullmatch(name)]
            for name in current:
                recipes.setdefault(name, []).append(needs)
                said = text.strip() or " ".join(comment)
                if said:
                    texts.setdefault(name, said)
                if text.strip():
                    documented.add(name)
        elif line.strip():
            current = []
        comment = []
    return [
        Task(name, texts.get(name, ""), _parameters(recipe, variables))
        for name, recipe in recipes.items()
        if name in phony or name in documented or not re.search(r"[./]", name)
    ]


def _parameters(recipe: list[str], variables: dict[str, str]) -> tuple[Parameter, ...]:
    """The variables with `?=` that a recipe uses: they are there to be given."""
    used = dict.fromkeys(name for line in recipe for name in REFERENCE.findall(line) if name in variables)
    return tuple(Parameter(name, variables[name], f"{name}={{}}") for name in list(used)[:MAX_VARIABLES])
