"""The targets in a Makefile, with their comments. The text is read, but nothing in it is evaluated.

Rule: a value that a client sends is a word for a program, never the program. A variable is an argument only if every
line that uses it is harmless, as `shell_lines` says. make puts what it is given into the environment, where programs
obey it; so it is told not to (`unexport`). If another file, another shell or a name that is put together may lead to
any variable, none is an argument.
"""

from __future__ import annotations

import os
import re

from mcpgreen.cli.wrapping import shell_lines
from mcpgreen.cli.wrapping.shell_lines import EDGE, IDENTIFIER, is_destructive
from mcpgreen.cli.wrapping.task_files import DESTROYS, Parameter, Task, text_of
from mcpgreen.cli.wrapping.tool_file import plain

MAX_VARIABLES = 20  # of a target
LINE_CHARS = 80  # of a line in a message

RULE = re.compile(r"^([^\s#:=][^:=#]{0,500})::?(?![=:])([^\n]{0,4000})$")
ASSIGNMENT = re.compile(r"^\s*(?:(?:export|override|private)\s+)*([A-Za-z_][\w.-]*)\s*([:?+!]{0,3})=([^\n]*)$")
CONTINUATION = re.compile(r"(?<!\\)((?:\\\\){0,1000})\\\n")
TARGET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,100}")
# A variable of the shell, or of make. Then what stands for names of files.
REFERENCE = re.compile(
    r"\$\$(\w+)|\$\$\{(\w+)\}|\$\((\w+)\)|\$\{(\w+)\}|\$(\w)|(\$\([@<^?*+|%][DF]?\)|\$[@<^?*+|%])|\$\$|(\$)"
)
# Variables that make itself or its own rules obey, and those without which programs do not find their way.
OBEYED = re.compile(
    r"MAKE\w*|\w*(?:PATH|FLAGS|SHELL)|HOME|SUFFIXES|AR|AS|CC|CXX|CPP|F77|FC|LD|M2C|OBJC|PC|CO|GET|LEX|YACC|LINT|TEX"
    r"|TEXI2DVI|C?WEAVE|C?TANGLE|RM|LDLIBS|LOADLIBES|TARGET_(?:ARCH|MACH)|(?:COMPILE|LINK|PREPROCESS)\w*|OUTPUT_OPTION"
)
# Set in the environment, as a rule; and empty, as a rule.
IN_ENVIRONMENT = re.compile(r"OS|USER|LOGNAME|PWD|HOST(?:NAME)?|LANG|TE?MP(?:DIR)?|\w*(?:TOKEN|SECRET|PASSWORD|KEY)\w*")
OPTIONAL = re.compile(r"(?i)[QV]|DESTDIR|SUDO|\w*(?:ARGS?|OPTS?|OPTIONS|EXTRA|VERBOSE|DEBUG|FORCE|QUIET|DRY_?RUN)")
# Not with MAKEFLAGS either, from which a make that a script runs would take them.
UNEXPORT = "--eval=unexport {} MAKEFLAGS"
WITHIN_RECIPE = re.compile(r"\s*(?:(?:ifn?(?:eq|def)|else|endif)\b|$)")  # any other line ends the recipe
EXPORT = re.compile(r"(?:^|[\s:])export\s+([^=]*)")
FUNCTIONS = (
    "abspath|addprefix|addsuffix|and|basename|dir|error|file|filter|filter-out|findstring|firstword|flavor|foreach|if|"
    "info|intcmp|join|lastword|notdir|or|origin|patsubst|realpath|shell|sort|strip|subst|suffix|warning|wildcard|word|"
    "wordlist|words"
)
# A reference that is none of a plain name, a function that looks no variable up, or `call` of a plain name.
COMPUTED_NAME = re.compile(rf"\$[({{](?!(?:{FUNCTIONS})\s|call\s+[\w.-]+\s*[,)}}]|[^\s$(){{}}:]+[:)}}])")
# With these, a variable may be defined or used where we do not see it, or recipes are no lines of a shell.
DIRECTIVE = re.compile(r"\s*(?:(?:s|-)?include|load)\b|\s*\.(?:ONESHELL|RECIPEPREFIX|SECONDEXPANSION)\b")
OTHER_MAKE = re.compile(r"\bg?make(?![\w-])|\$[({]MAKE[)}]")
SHELL = re.compile(r"(?:[^#\n]{0,500}[\s:])?SHELL\s*[:?+!]{0,3}=\s*(?:\S*/)?(?:env\s+)?(\S*)")


class _Variables:
    """What is defined, and where it is used."""

    def __init__(self) -> None:
        self.offered: dict[str, str] = {}  # with `?=` or without a value, and what is said about it
        self.needed: set[str] = set()  # without a value
        self.defined = {"CURDIR"}
        self._referred: dict[str, bool] = {}  # by recipes; true if not only by functions, such as `if`
        self.is_whole = True  # all definitions are seen
        self._odd: dict[str, str] = {}  # has a value somewhere that is not plain
        self.refused: dict[str, str] = {}  # with the line that makes it unsafe
        self._recipes: dict[str, None] = {}  # their lines that refer to something
        self.unclear = ""  # a line that may use any variable

    def define(self, name: str, operator: str, value: str) -> None:
        self.refuse(value)
        value, _, said = value.partition("#")
        value = value.strip()
        self.defined.add(name)
        if operator in ("+", "!") or not shell_lines.is_plain(value):
            self._odd[name] = f"a computed value: {name} {operator}= {value}"
        if operator == "?":
            default = f"{value} by default." if value and "$" not in value else ""
            self.offered.setdefault(name, said.lstrip("#").strip()[:500] or default)

    def refuse(self, text: str, line: str = "") -> None:
        """What is referred to outside of recipes, or in a line that is not harmless, is no argument."""
        if "$" in text or "`" in text:
            for name in IDENTIFIER.findall(text):
                self.refused.setdefault(name, line or text)
            if shell_lines.COMPUTED_NAME.search(REFERENCE.sub(self._marked, text)):
                self.unclear = self.unclear or line or text

    def use(self, line: str) -> set[str]:
        """What a line of a recipe refers to, and whether it destroys something."""
        line = re.sub(shell_lines.MESSAGE, "", line)
        if "$" in line or "`" in line:
            self._recipes[line] = None
        found = REFERENCE.findall(line)
        is_plain = not any(groups[6] for groups in found)
        for name in (name for groups in found for name in groups[2:4] if name and (is_plain or name.isupper())):
            self._referred[name] = is_plain or self._referred.get(name, False)
        destroys = {DESTROYS} if is_destructive("", line) else set()
        return destroys.union(name for groups in found for name in groups[:5] if name)

    def arguments(self) -> dict[str, str]:
        others = self._referred.keys() - self.defined - os.environ.keys() if self.is_whole else set()
        for name, is_plain in self._referred.items():
            if name in others and not OBEYED.fullmatch(name) and not IN_ENVIRONMENT.fullmatch(name):
                self.offered[name] = ""
                self.needed |= {name} if is_plain and not OPTIONAL.fullmatch(name) else set()
        known = (self.defined | self.offered.keys()) - self._odd.keys()
        for line in self._recipes:
            marked = REFERENCE.sub(self._marked, line).lstrip(" \t@+-")
            has_function = any(groups[6] for groups in REFERENCE.findall(line))
            if has_function or not shell_lines.is_harmless(marked, known):
                why = re.sub(r"^(?=.*>(?!&|[ \t]*/dev/null))", "it writes to a file: ", line)
                odd = (self._odd[name] for name in IDENTIFIER.findall(line) if name in self._odd)
                self.refuse(line, next(odd, why))
        refused = self.offered.keys() if self.unclear else self.refused.keys()
        return {name: self.offered[name] for name in self.offered.keys() - refused if not OBEYED.fullmatch(name)}

    def _marked(self, found: re.Match[str]) -> str:
        if own_of_shell := found[1] or found[2]:
            return f"${{{own_of_shell}}}"
        name = found[3] or found[4] or found[5]
        return f"{EDGE}{name}{EDGE}" if name else "_" if found[6] else "$"


def targets_in(path: str) -> list[Task]:
    """What `make NAME` can be told to do: words, and files that are declared phony or have a `##`."""
    lines = CONTINUATION.sub(rf"\1{EDGE}", text_of(path).replace(EDGE, "")).split("\n")
    texts: dict[str, str] = {}
    uses: dict[str, list[set[str]]] = {}  # what each rule of a target refers to
    made_from: dict[str, list[str]] = {}  # what each target depends on
    phony: set[str] = set()  # or documented with `##`
    variables = _Variables()
    comment: list[str] = []
    used: set[str] = set()
    is_defining = is_in_rule = False
    for raw in lines:
        # A shell reads what make leaves of a recipe, and joins lines without a space between them.
        line = re.sub(rf"{EDGE}\t?", "", raw) if raw.startswith("\t") else raw.replace(EDGE, " ")
        is_recipe = line.startswith("\t") and is_in_rule and not is_defining
        exported = None if is_recipe or is_defining else EXPORT.search(re.split(r"(?<!\\)#", line)[0])
        if exported:
            variables.refuse(f"$({exported[1]})", line)
            variables.defined.update(IDENTIFIER.findall(exported[1]))
            variables.unclear = variables.unclear or (line if re.search(r"\$|MAKEFLAGS", exported[1]) else "")
        if found := re.match(r"\s*(?:(?:override|export|private)\s+)*(define|endef)\b\s*([\w.-]*)", line):
            is_defining, is_in_rule = found[1] == "define", False
            variables.defined.add(found[2])
            continue
        if is_recipe or is_defining or not line.lstrip().startswith("#"):
            shell = None if is_recipe else SHELL.match(line)
            is_other = DIRECTIVE.match(line) or (shell and shell[1] not in shell_lines.SHELLS)
            is_other = is_other or COMPUTED_NAME.search(line.replace("$$", ""))
            variables.is_whole = variables.is_whole and not is_other
            is_other = is_other or (is_recipe and OTHER_MAKE.search(shell_lines.without_text(raw)))
            variables.unclear = variables.unclear or (line if is_other else "")
        if is_defining:
            variables.refuse(line)
            continue
        if is_recipe:
            used.update(variables.use(line[1:]))
            continue
        line = line.rstrip()
        if line.startswith("#"):
            comment.append(line.lstrip("#! ").strip())
            continue
        rule, assignment = RULE.match(line), ASSIGNMENT.match(line)
        is_in_rule = is_in_rule and WITHIN_RECIPE.match(line) is not None
        if assignment:
            variables.define(assignment[1], assignment[2], assignment[3])
        elif rule and (own := ASSIGNMENT.match(rule[2])):
            variables.define(own[1], own[2].replace("?", ""), own[3])  # for one target, so it is not offered
            variables.refuse(rule[1])
        elif rule:
            names = rule[1].split()
            needs, _, recipe = rule[2].partition(";")
            text = rule[2].partition("##")[2].strip()
            needs = needs.partition("##")[0]
            variables.refuse(f"{rule[1]} {needs}")
            used = variables.use(recipe) | ({DESTROYS} if is_destructive(needs) else set())
            is_in_rule = True
            for name in filter(TARGET.fullmatch, names):
                uses.setdefault(name, []).append(used)
                made_from.setdefault(name, []).extend(needs.split())
                texts[name] = texts.get(name) or text or " ".join(comment)
            phony.update(needs.split() if names == [".PHONY"] else names if text else ())
        elif line:
            variables.refuse(line)
            used = used if is_in_rule else set()
        comment = []
    arguments = variables.arguments()
    order = {name: at for at, name in enumerate(variables.offered)}
    tasks = []
    is_file = {name: name not in phony and re.search(r"[./]", name) is not None for name in uses}
    for name in uses:
        if not is_file[name]:
            # Variables with `?=` or without a value that these rules use are there to be given.
            used = set().union(*(rule for part in (name, *filter(is_file.get, made_from[name])) for rule in uses[part]))
            used_here = sorted(used & order.keys(), key=order.__getitem__)[:MAX_VARIABLES]
            given = [each for each in used_here if each in arguments]
            others = {each: variables.refused.get(each) or variables.unclear for each in used_here if each not in given}
            refused = tuple(f"{each} ({plain(why or 'make uses it', LINE_CHARS)})" for each, why in others.items())
            needed, words = variables.needed, {each: (UNEXPORT.format(each), f"{each}={{}}") for each in given}
            parameters = tuple(Parameter(each, arguments[each], words[each], each in needed) for each in given)
            is_missing, destroys = not needed.isdisjoint(used.difference(given)), DESTROYS in used
            tasks.append(Task(name, texts[name], parameters, refused, is_missing, destroys or is_destructive(name)))
    return tasks
