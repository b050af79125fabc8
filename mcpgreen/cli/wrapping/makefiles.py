"""The targets of a Makefile, with what is written about them. Its text is read; nothing of it is evaluated.

Rule: a value that a client sends is a word for a program, never the program: what stands where a shell expects one, or
what make itself obeys, is no argument.
"""

from __future__ import annotations

import os
import re

from mcpgreen.cli.wrapping.task_files import Parameter, Runner, Task, place_of, text_of

USUAL_NAMES = ("Makefile", "makefile", "GNUmakefile")
MAX_VARIABLES = 20  # of a target

RULE = re.compile(r"^([^\s#:=][^:=#]{0,500})::?(?![=:])([^\n]{0,4000})$")
ASSIGNMENT = re.compile(r"^\s*(?:export\s+|override\s+|private\s+)*[A-Za-z_][\w.-]*\s*(?:[:?+!]{0,3}=)")
OVERRIDABLE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w{0,60})\s*\?=\s*([^#\n]{0,500})(?:#+\s*(.{0,500}))?$")
TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,100}")
REFERENCE = re.compile(r"\$[({]([A-Za-z_]\w{0,60})[)}]")
PROGRAM = re.compile(
    r"(?:^[\s@+-]{0,40}|[;&|(`{!]\s{0,40}|(?:\b(?:then|do|else|exec|sudo|env|shell|xargs|time|nohup|eval)| -c)\s{1,40})"
    r"(?:[A-Za-z_]\w{0,60}=\S{0,200}\s{1,40}){0,5}[\"']?[\w./-]{0,100}\$[({]([A-Za-z_]\w{0,60})[)}]"
)
OBEYED = re.compile(r"SHELL|MAKE|MAKEFILES|(?:GNU)?MAKEFLAGS|MFLAGS|VPATH|PATH|IFS|ENV|BASH_ENV|LD_\w+|DYLD_\w+")


def runner_for(path: str, root: str) -> Runner:
    directory, name = place_of(path, root), os.path.basename(path)
    words = ["make", *(["-C", directory] if directory else []), *(["-f", name] if name not in USUAL_NAMES else [])]
    return Runner("make", tuple(words))


def targets_in(path: str) -> list[Task]:
    """What `make NAME` can be told to do: words, and files that are declared phony or have a `##`."""
    lines = text_of(path).replace("\\\n", " ").split("\n")
    texts: dict[str, str] = {}
    uses: dict[str, list[set[str]]] = {}  # what each rule of a target refers to
    programs: set[str] = set()
    phony: set[str] = set()
    documented: set[str] = set()
    variables: dict[str, str] = {}
    comment: list[str] = []
    used: set[str] = set()
    is_defining = False
    for line in lines:
        if re.match(r"\s*(define|endef)\b", line):
            is_defining = "define" in line.split()[:1]
            continue
        if is_defining:
            continue
        if line.startswith("\t"):
            used.update(REFERENCE.findall(line))
            programs.update(PROGRAM.findall(line[1:]))
            continue
        line = line.rstrip()
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
            used = set(REFERENCE.findall(needs))
            programs.update(PROGRAM.findall(needs.partition(";")[2]))
            for name in filter(TARGET.fullmatch, names):
                uses.setdefault(name, []).append(used)
                said = text.strip() or " ".join(comment)
                if said:
                    texts.setdefault(name, said)
                if text.strip():
                    documented.add(name)
        elif line:
            used = set()
        comment = []
    variables = {name: text for name, text in variables.items() if name not in programs and not OBEYED.fullmatch(name)}
    return [
        Task(name, texts.get(name, ""), _parameters(rules, variables))
        for name, rules in uses.items()
        if name in phony or name in documented or not re.search(r"[./]", name)
    ]


def _parameters(rules: list[set[str]], variables: dict[str, str]) -> tuple[Parameter, ...]:
    """The variables with `?=` that the rules of a target use: they are there to be given."""
    used = [name for name in variables if any(name in rule for rule in rules)]
    return tuple(Parameter(name, variables[name], f"{name}={{}}") for name in used[:MAX_VARIABLES])
