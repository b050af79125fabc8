"""Read usage lines: the operands, the required options, and `--`.

    usage: git log [<options>] [<revision-range>] [[--] <path>...]

Rule: every bracket is read once, at most MAX_DEPTH deep. What is not understood is skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.options import IN_SQUARE, NAME, Option, closing, signature_at

MAX_FORMS = 20
MAX_FORM_CHARS = 8000
MAX_GROUPS = 1000
MAX_DEPTH = 6
MAX_OPERANDS = 12
DEEP = 7  # a broken line goes on below the arguments, and "usage: " has seven characters

HEADING = re.compile(r"(?i)^\W{0,4}(?:.{0,60}\. )?(?:usage|synopsis)\b(?! of\b)\s*:?\s*(.*)$")
OTHER_FORM = re.compile(r"(?i)^or:? +")
TRAILING_TEXT = re.compile(r"(?<! ) {3,80}(?=[a-z(])")
PLACEHOLDER = re.compile(r"(?i)(?!-)[\w -]*(?:options?|flags?|switch(?:es)?|opts|parameters)(?:\W*|[;,].*)")
# A word with its optional parts: OFFSET[.][b], FILE[,FILE]
WORD = re.compile(
    r"(<[^<>]{1,80}>(?:(?!\.\.)[^\s\[\]()|])*|(?:(?!\.\.)[^\s\[\]()|{}<>])+(?:<[^<>]{1,80}>)?)" rf"(?:\[{IN_SQUARE}\])*"
)
PART = re.compile(rf"(?:\[{IN_SQUARE}\]|<[^<>]*>|\{{[^{{}}]*\}}|\([^()]*\)|[^|])+")  # between two bars
DOTS = re.compile(r"\s*(?:\.\.\.?|…)")
FINAL_DOTS = re.compile(r"(?<=\w)\s{0,8}(?:\.\.\.|…)$")
PART_OF_WORD = re.compile(r"[^\w<{-]*")  # [+]OFFSET
OTHER_OPERAND = re.compile(r"\|\s*(?:-(?=\s|$)|<[^<>]{1,80}>|[A-Z][\w-]*)")  # PATH | URL | -
BUNDLE = re.compile(r"-\w{2,}")
AS_MODULE = re.compile(r"^\S*python\S* -m ")
LITERAL = re.compile(r"[a-z][\w:-]*")
PLURALS = frozenset({"args", "arguments", "files", "paths", "filenames", "targets"})
SEVERAL = re.compile(r"[\w.:-]+(?:[,|][\w.:-]+(?: [\w.:-]+){0,4})+")

# Manners of writing of one library or command, and the usual way to write the same.
REWRITES = {
    r" ?\[\.\.\.?\]": "...",
    r"\{([^{}]{0,500}\[[^{}]{1,500})\}": r"(\1)",  # ffmpeg: {[outfile options] outfile}...
    r"<([^<>|]{1,80}\|-[^<>]{1,80})>": r"(\1)",  # clap: <RULE|--all>
    r"(\{[^{}]{1,2000}\}) +\.\.\.": r"\1 [arguments...]",  # argparse: {add,remove} ...
    r"\[\([\w|]{1,80}\):\](?=<)": "",  # git: [(amend|reword):]<commit>
    r"\((?:-\w ?\| ?){1,9}(--[\w-]{1,40}(?:=|(?=\) [\[<])))\)": r"\1",  # (-o|--output=)json|yaml, (-m | --max) <n>
}


class Operand(NamedTuple):
    name: str
    is_required: bool = True
    is_repeated: bool = False
    choices: tuple[str, ...] = ()
    is_after_separator: bool = False  # the usage has `--` before it
    text: str = ""

    @property
    def argument(self) -> str:
        """The name for a tool: FILE... is files, and DIRECTORY... directories."""
        is_singular = self.is_repeated and self.name[-1:].isalpha() and not self.name.lower().endswith("s")
        return re.sub(r"(?<![aeiou])y$", "ie", self.name.lower()) + "s" if is_singular else self.name.lower()


def forms_in(lines: Sequence[str]) -> list[str]:
    """Return the usage lines without their heading. Continuation lines, which are indented, are joined."""
    forms: list[str] = []
    rest = iter(lines)
    for line in rest:
        found = HEADING.match(line)
        if found and (found[1] or line.strip().rstrip(":").lower().endswith(("usage", "synopsis"))):
            forms = [found[1].strip()] if found[1].strip() else []
            break
    for line in rest:
        text = line.strip()
        if not text and not forms:
            continue
        if not text:
            break
        if not forms or OTHER_FORM.match(text) or text.split()[0] == forms[0].split()[0]:
            if len(forms) >= MAX_FORMS:
                break
            forms.append(OTHER_FORM.sub("", text))
        elif len(line) - len(line.lstrip()) < DEEP and not text.startswith(("[", "(", "<", "{", "|")):
            break  # what comes next: an option, or a sentence
        elif len(forms[-1]) < MAX_FORM_CHARS:
            forms[-1] += " " + text
    return [TRAILING_TEXT.split(form)[0][:MAX_FORM_CHARS] for form in forms]


def after_command(forms: Sequence[str], command: Sequence[str]) -> dict[str, str]:
    """Return the rest of each form after the command and its subcommands. A form that does not name them is left out,
    unless none does: `npm i` shows the help of `npm install`, so its forms have another name in their place."""
    words = command[3:] if command[1:2] == ["-m"] else command[1:]
    subcommands = [word for word in words if os.sep not in word]  # not the script of an interpreter
    rests = {}
    for form in [form for form in forms if set(subcommands).issubset(form.split())] or forms:
        rest = AS_MODULE.sub("", form).split()[1:]
        for subcommand in subcommands:
            if subcommand in rest:
                rest = rest[rest.index(subcommand) + 1 :]  # `prog [OPTIONS] sub` has options in between
            elif rest and LITERAL.fullmatch(rest[0]):
                rest = rest[1:]
        rests[form] = " ".join(rest)
    return rests


class Usage:
    """Read one form. `known`, the documented options by name, shows whether the word after an option is its value."""

    def __init__(self, form: str, known: Mapping[str, Option], *, has_literals: bool = False) -> None:
        self.operands: list[Operand] = []
        self.options: list[Option] = []
        self.has_separator = False
        self._known = known
        self._has_literals = has_literals  # docopt: a word without brackets stands for itself
        self._groups = 0
        for pattern, usual in REWRITES.items():
            form = re.sub(pattern, usual, form)
        self._sequence(form, is_required=True, depth=0)
        del self.operands[MAX_OPERANDS:]

    def has(self, operands: Sequence[str]) -> bool:
        """Tell whether the operands of this form begin with these names."""
        return [operand.name for operand in self.operands[: len(operands)]] == list(operands)

    def _sequence(self, text: str, *, is_required: bool, depth: int) -> None:
        position = 0
        while position < len(text):
            char = text[position]
            if char.isspace():
                position += 1
            elif char in "[(":
                end = self._group(text, position, is_required=is_required, depth=depth)
                is_required = is_required and end > position + 1  # in an unclosed bracket, everything is optional
                position = end
            elif other := OTHER_OPERAND.match(text, position):
                position = other.end()
            elif char == "{":
                position = self._choices(text, position, is_required=is_required)
            elif text.startswith("--", position) and text[position + 2 : position + 3] in ("", " "):
                self.has_separator = True
                position += 2
            elif char == "-" and (name := NAME.match(text, position)):
                position = self._option(text, name, is_required=is_required, depth=depth)
            elif dots := DOTS.match(text, position):
                self._repeat_last()
                position = dots.end()
            elif found := WORD.match(text, position):
                position = self._word(text, found, is_required=is_required)
            else:
                position += 1

    def _group(self, text: str, position: int, *, is_required: bool, depth: int) -> int:
        self._groups += 1
        if self._groups > MAX_GROUPS:
            return len(text)
        end = closing(text, position)
        if depth >= MAX_DEPTH or end < 0:
            return position + 1
        inside = text[position + 1 : end].strip()
        is_required = is_required and text[position] == "("
        dots = DOTS.match(text, end + 1)
        after = dots.end() if dots else end + 1
        is_part = PART_OF_WORD.fullmatch(inside) or (text[position - 1 : position] == "]" and len(inside) == 1)
        if PLACEHOLDER.fullmatch(inside) or is_part:
            return after
        are_repeated = False
        before = len(self.operands), len(self.options)
        parts = [part for part in PART.findall(inside) if part.strip() != "-"]  # FILE | -: standard input
        if len(parts) > 1:
            are_repeated = FINAL_DOTS.search(inside) is not None  # FILE|DIR ...
            parts[-1] = FINAL_DOTS.sub("", parts[-1])
            self._alternatives(parts, is_required=is_required, depth=depth + 1)
        elif parts:
            self._sequence(parts[0], is_required=is_required, depth=depth + 1)
        if dots:
            self.operands[before[0] :] = [each._replace(is_repeated=True) for each in self.operands[before[0] :]]
        elif are_repeated and len(self.operands) > before[0]:
            self._repeat_last()
        if dots and not BUNDLE.fullmatch(inside):
            self.options[before[1] :] = [each._replace(is_repeated=True) for each in self.options[before[1] :]]
        return after

    def _alternatives(self, parts: Sequence[str], *, is_required: bool, depth: int) -> None:
        words = [part.strip() for part in parts]
        if all(WORD.fullmatch(word) and not word.startswith("-") for word in words):
            are_literal = all(map(LITERAL.fullmatch, words))
            name = "choice" if are_literal else _plain(words[0])
            self._add(Operand(name, is_required, choices=tuple(words) if are_literal else ()))
            return
        if words[0].startswith("-"):
            words = [word for word in words if not LITERAL.fullmatch(word)]
        aliases: list[str] = []
        first = len(self.operands)
        for word in words:
            before = len(self.operands)
            # -S|--save is one option, and --save|--no-save are two.
            if NAME.fullmatch(word) and not word.startswith("--"):
                aliases.append(word)
                continue
            if word.startswith("--"):
                word, aliases = ", ".join([*aliases, word]), []
            self._sequence(word, is_required=False, depth=depth)
            del self.operands[before if before > first else len(self.operands) :]  # one alternative has its say
        for alias in aliases:
            self._sequence(alias, is_required=False, depth=depth)

    def _choices(self, text: str, position: int, *, is_required: bool) -> int:
        end = closing(text, position)
        if end < 0:
            return position + 1
        inside = text[position + 1 : end]
        dots = DOTS.match(text, end + 1)
        choices = tuple(re.split(r"[,|]", inside)) if SEVERAL.fullmatch(inside) else ()
        name = "command" if choices else _plain(inside)
        # sed: {script-only-if-no-other-script}
        self._add(Operand(name, is_required and bool(choices), dots is not None, choices))
        return dots.end() if dots else end + 1

    def _option(self, text: str, name: re.Match[str], *, is_required: bool, depth: int) -> int:
        known = self._known.get(name[0])
        signature = signature_at(text, name.start())
        if signature is None or (depth == 0 and known and text[name.end() : name.end() + 1] == " "):
            # What the option does not take is an operand: -t DIRECTORY SOURCE...
            end, option = name.end(), Option((name[0],))
            for _ in known.values if known else ():
                value = WORD.match(text, end + 1)
                end = value.end() if value else end
        else:
            end, option = signature.end, signature.option
        for each in _unbundled(option) if known is None else [option]:
            self.options.append(each._replace(is_required=is_required))
        return end

    def _word(self, text: str, found: re.Match[str], *, is_required: bool) -> int:
        word, dots = found[1], DOTS.match(text, found.end())
        end, is_repeated = (dots or found).end(), dots is not None
        if PLACEHOLDER.fullmatch(word.strip("<>")) or not _plain(word) or word == "-":
            return end
        is_literal = self._has_literals and LITERAL.fullmatch(word) is not None
        self._add(Operand(_plain(word), is_required, is_repeated, (word,) if is_literal else ()))
        return end

    def _add(self, operand: Operand) -> None:
        is_plural = operand.name.lower() in PLURALS
        operand = operand._replace(is_after_separator=self.has_separator, is_repeated=operand.is_repeated or is_plural)
        last = self.operands[-1] if self.operands else None
        if last and last.name == operand.name and not operand.choices:  # FILE [FILE ...]
            self.operands[-1] = last._replace(is_repeated=True)
        else:
            self.operands.append(operand)

    def _repeat_last(self) -> None:
        if self.operands:
            self.operands[-1] = self.operands[-1]._replace(is_repeated=True)


def _plain(word: str) -> str:
    """Return the name in `<name>` or `NAME=VALUE`."""
    return word.strip("<>[]{}.,;:'\"`").partition("=")[0].strip("<>[]")


def _unbundled(option: Option) -> list[Option]:
    """`-abC` in a usage line is three flags, unless it looks like one word."""
    letters = option.name[1:]
    is_word = len(letters) > 3 and letters.islower() and list(letters) != sorted(letters)
    are_flags = letters.isalnum() and len(set(letters)) == len(letters) > 1 and not is_word
    if not are_flags or len(option.names) > 1:
        return [option]
    *flags, last = (Option((f"-{letter}",)) for letter in letters)
    return [*flags, option._replace(names=last.names)]


def merged_operands(usages: Sequence[Usage]) -> tuple[Operand, ...] | None:
    """Return the operands of all forms together. If the forms have different ones, those of the first form count;
    None if they include literal words, so that each form is another command."""
    # A form that has nothing is there for --help and --version.
    usages = [usage for usage in usages if usage.operands or usage.options] or usages
    longest = max((usage.operands for usage in usages), key=len, default=[])
    names = [each.name for each in longest]
    if not all(usage.has(names[: len(usage.operands)]) for usage in usages):
        if any(operand.choices for usage in usages for operand in usage.operands):
            return None
        longest = next(usage.operands for usage in usages if usage.operands)
        usages = [usage for usage in usages if len(usage.operands) == len(longest)]
    merged = []
    for position, operand in enumerate(longest):
        forms = [usage.operands[position] for usage in usages if position < len(usage.operands)]
        is_required = len(forms) == len(usages) and all(form.is_required for form in forms)
        is_after_separator = all(form.is_after_separator for form in forms)
        operand = operand._replace(is_required=is_required, is_after_separator=is_after_separator)
        merged.append(operand._replace(is_repeated=any(form.is_repeated for form in forms)))
    return tuple(merged)
