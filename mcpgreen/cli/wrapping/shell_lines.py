"""Check whether a shell line passes its values only to programs that do not execute them.

Makefiles, justfiles and package.json give such lines to a shell, with values of a client in them. A value must never be
the program, nor a word that a program runs. The values themselves are plain (`PLAIN_VALUE`): they end no
quotes, begin no option and have no spaces.

Rule: a line is refused unless every program in it is in `HARMLESS` or is a script of the project. There are too many
programs that run other programs to list those instead. Programs `FOR_FILES` may be in the line, but get no value: it
could be the path of any file. A line is only read, by these few forms, and never run.
"""

from __future__ import annotations

import re
from collections.abc import Container

from mcpgreen.cli.wrapping.reading.value_types import words_in

# In the line, the name of each value stands between two of these.
EDGE = "\0"
VALUE = re.compile(r"\0([\w-]+)\0")
# Nothing that a shell or make would expand, split or take for an option, nor a program for the name of a file.
PLAIN_VALUE = "^[A-Za-z0-9_./:,%][A-Za-z0-9_./:,@%+=-]*$"
IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")

SHELLS = words_in("sh bash dash ash zsh ksh mksh")
# They run nothing, and neither write nor show a file, whatever their words are.
HARMLESS = words_in(": true false exit fi done } echo printf test [ tr basename dirname pwd sleep ping dig host")
# They run nothing either, but delete, make or show the files that are named to them.
FOR_FILES = words_in(
    "cat ls head tail grep wc cut mkdir touch rm rmdir date stat du df diff cmp realpath "
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum"
)
# They stand before a command. Other words of the language of a shell (for, case, function) are not understood.
PREFIXES = words_in("if then elif else while until do ! {")
# They delete something, or change it where others see it; as a word of a command, or in the name of a task.
DESTRUCTIVE = words_in(
    "apply clean dd delete -delete --delete deploy destroy distclean drop dropdb kill killall nuke pkill prune purge "
    "publish push release remove reset rm rmdir rmi rollback rsync shred teardown truncate undeploy uninstall wipe"
)

INTERPRETERS = rf"(?:{'|'.join(sorted(SHELLS))}|(?:python|pypy|ruby|perl|php|lua)[\d.]*|node|deno|bun|tsx|ts-node)"
INTERPRETER = re.compile(rf"(?:[\w./-]*/)?{INTERPRETERS}")
# A path below the project. What others wrote and somebody installed there can run its words.
PLACE = r"(?:\./)?(?:(?!(?:node_modules|v?env|vendor|\w*-packages)/)\w[\w.-]*/)*"
SCRIPT = re.compile(rf"{PLACE}\w[\w.-]*\.(?:sh|bash|zsh|ksh|py|rb|pl|php|lua|js|mjs|cjs|ts|mts)")

# The name of a variable that the shell puts together, or that a program looks up: it can be the name of any variable.
COMPUTED_NAME = re.compile(
    r"\$\{!|\$\{?\w*\0|\$\{?\s*$|\b(?:eval|printenv|envsubst)\b|\b(?:declare|typeset|local)\s+-\w*n|/environ\b"
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
# Functions of make that only print, what a line prints or has in quotes, and comments.
MESSAGE = r"(?<!\$)\$\((?:error|info|warning)\s[^()$`]*\)"
QUOTED = r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\['\"#]"
TEXT = re.compile(rf"(?<![\w./-])(?:echo|printf)\b(?:{QUOTED}|[^;&|'\"])*|{QUOTED}|{MESSAGE}|(?<!\S)#.*")
RUNS_TEXT = re.compile(
    r"(?<!\\)`|\$\$\(|\$[({](?!\w+[)}]|error\s|info\s|warning\s)"
    rf"|(?<![\w.-])(?:{INTERPRETERS}|eval|ssh|xargs|watch|system)(?![\w.-])"
)
TOKEN = re.compile(
    r"(?P<space>[ \t]+)|(?P<comment>#.*)|(?P<nowhere>\d*(?:>&\d|>>?[ \t]*/dev/null)(?=[\s;&|]|$))"
    r"|(?P<operator>&&|\|\||\|&|[;&|()])"
    r"|(?P<word>(?<![^\s;&|(])[{}](?=[\s;&|)]|$)|(?:[^\s;&|<>(){}`'\"\\$]|\\.|'[^']*'|\"(?:[^\"\\`$]|\\.)*\")+)"
)


def is_harmless(line: str, known: Container[str]) -> bool:
    """Whether no value in a line, each marked by `EDGE`, can be run or be kept for something that runs it.

    `known` are names whose values in the file are plain; any other could hold half a command.
    """
    commands = _commands(line) if all(name in known for name in VALUE.findall(line)) else None
    return commands is not None and all(map(_runs_no_word, commands))


def without_text(line: str) -> str:
    """Return a line without its comment and what is quoted or printed, unless a program in it may run that."""
    goes_on = EDGE in line.partition("#")[2]  # to a shell, the next line is no part of the comment
    return line if goes_on or RUNS_TEXT.search(line) else TEXT.sub(" ", line)


def is_destructive(name: str, line: str = "") -> bool:
    """Tell whether a task of this name, or with this line, seems to delete or publish something."""
    words = re.split(r"[\s\0;&|(){}$@'\"`]+", without_text(line).lstrip(" \t@+-").lower())
    return not DESTRUCTIVE.isdisjoint([*words, *re.split(r"[\W_]+", name.lower())])


def is_plain(text: str) -> bool:
    """Whether a value that the file itself has does nothing where it stands."""
    return all(re.fullmatch(PLAIN_VALUE, word) for word in text.split())


def _commands(line: str) -> list[list[str]] | None:
    """The words of each command, without the words of the shell before it; None if the line is not understood."""
    position = 0
    commands: list[list[str]] = [[]]
    while position < len(line):
        token = TOKEN.match(line, position)
        if token is None:
            return None
        position = token.end()
        if token.lastgroup == "word" and (commands[-1] or token[0] not in PREFIXES):
            commands[-1].append(token[0])
        elif token[0] == "(" and commands[-1]:
            return None  # a function, or a list
        elif token.lastgroup == "operator":
            commands.append([])
        elif token.lastgroup == "comment" and VALUE.search(token[0]):
            return None  # the comment may have been continued: to a shell, the next line is none
    return commands


def _runs_no_word(words: list[str]) -> bool:
    first = next((at for at, word in enumerate(words) if EDGE in word or not ASSIGNMENT.match(word)), len(words))
    program, rest = "".join(words[first : first + 1]), words[first + 1 :]
    if program == "cd":
        return len(rest) == 1 and re.fullmatch(PLACE, f"{rest[0].rstrip('/')}/") is not None
    if program == "printf" and rest and rest[0].lstrip("'\"\\").startswith("-"):
        return False  # -v sets a variable
    script = "".join(rest[:1]) if INTERPRETER.fullmatch(program) else program if "/" in program else ""
    is_fixed = program in FOR_FILES and EDGE not in "".join(rest)
    is_known = not program or program in HARMLESS or is_fixed or SCRIPT.fullmatch(script)
    return bool(is_known) and not any(map(_is_option, rest))


def _is_option(word: str) -> bool:
    """Whether a value is the name of an option, or a part of it."""
    literal, edge, _ = word.partition(EDGE)
    return bool(edge) and literal.lstrip("'\"\\").startswith("-") and "=" not in literal
