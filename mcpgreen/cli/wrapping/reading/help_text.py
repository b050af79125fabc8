"""Understand a help text: combine the options in its columns with the usage lines.

`STYLES` has the libraries that write help texts, recognized by their phrases from the top down, with what their parsers
accept. Without a known style, values are taken as they are documented, and `--` only if the usage has it.

Rule: lines are cut and options are counted, so that a help text cannot take much time or memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from mcpgreen.cli.wrapping.reading.options import MAX_OPTIONS, MAX_TEXT_CHARS, Option, options_in
from mcpgreen.cli.wrapping.reading.usage_lines import Operand, Usage, after_command, forms_in, merged_operands
from mcpgreen.cli.wrapping.reading.value_types import default_of, legends_in

MAX_LINES = 20_000
MAX_LINE_CHARS = 2000
MAX_SUMMARY_CHARS = 400
MAX_SUBCOMMANDS = 100

ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|.\x08")
BOX = ("│", "┃")
STAR = re.compile(r"^ *\* {0,40}(?=-)")  # typer marks required options with a star; the text says so, too
# typer has names, types and descriptions in columns: the space before another name, or before a type.
COLUMN = re.compile(
    r"(?<=\S) {2,}(?=-|(?:[A-Z][A-Z_]*(?: RANGE)?|\[[^\[\]]{1,99}\|[^\[\]]{1,99}\]|<[^<>]{1,99}>)(?:\.\.\.)?(?:  |$))"
)
# A line with one name and a comma, before the line with another one; -<number>, -n <number> in git.
OTHER_NAMES = re.compile(r"^( {1,40}--?[^\s,]{1,100},)\n(?= +-)|^( {1,40})-<\w{1,20}>, (?=-)", re.MULTILINE)
SECTION = re.compile(
    r"^\s{0,3}(?:╭─ )?([A-Z][\w /-]{2,40}|[a-z]+ (?:arguments|options)|options|commands)(?::$| ─.*$|$)"
)
ENTRY = re.compile(r"^ {2,8}(?:\[--\] )?(?:\[?<?([A-Za-z][\w.:-]{0,40})>?\]?\.{0,3}),?(?: {2,}(.*)|$)")
# Not every `--` ends the options for all operands: jq 1.6 wants its filter before it.
SEPARATOR_ENTRY = re.compile(r"^ {1,40}-- {2,}.*(?:file names|end of )", re.MULTILINE)
STDIN = re.compile(r"(?i)\bstandard input\b|\bstdin\b")
LISTS = re.compile(r"(?i)(?:[\w-]+ )?(?:arguments|options|commands|flags):")
# A line that does not describe the command: headings, complaints, versions, authors.
NO_SUMMARY = re.compile(
    r"(?i)^(?:usage|or|options?|flags|synopsis|version|name|example|mandatory arguments|unknown|invalid|"
    r"unrecogni[sz]ed|illegal|(?:written|created) by|(?-i:By [A-Z]).*|authors?)\b|^[\w-]+\(\d\) |<[\w.+-]{1,60}@|"
    r"^[\w.-]+(?: \([^()]{1,40}\))?,? +(?:version +|v)?\d+\.\d|^\w+ (?:options|commands|arguments|flags|examples|help)$"
    r"|\b(?:illegal|invalid|unknown|unrecogni[sz]ed) option\b"
)
# A paragraph that does not: licences, and remarks about details or about the help itself.
NO_PARAGRAPH = re.compile(
    r"(?i)\bcopyright\b|\bwarranty\b|https?://\S+$|^(?:(?:the )?default|use|see|try|for more|this is not)\b"
)
LISTING = re.compile(r"(?!(?i:description|about|usage|name|synopsis)\b)[^-].*:$")
# The name before the sentence on the first line of a manual, and the version after it.
AROUND_SUMMARY = re.compile(r"^[\w.-]{1,60} +(?:-{1,2}|\u2014) +| *[\[(](?:version )?v?\d[\w.-]{0,20}[\])]$")


class Documented(NamedTuple):
    """A help text. `omitted` counts the options beyond the limit."""

    style: str
    are_types: bool = False  # the word after an option is its type
    summary: str = ""
    options: tuple[Option, ...] = ()
    operands: tuple[Operand, ...] = ()
    forms: tuple[str, ...] = ()  # the usage lines, where they disagree about the operands
    subcommands: tuple[str, ...] = ()
    is_separator_guessed: bool = False  # the help does not say that `--` ends the options; its style does
    reads_stdin: bool = False
    has_usage: bool = False
    omitted: int = 0
    legends: Mapping[str, str] = MappingProxyType({})  # explanations of values, by their name or option
    options_before: int = MAX_OPTIONS  # so many options come before the operands, the others after them, as in find
    shown: frozenset[str] = frozenset()  # the names of options in usage lines and examples
    excusing: frozenset[str] = frozenset()  # with one of these options, no operand is required


class Style(NamedTuple):
    name: str
    mark: str  # a pattern
    takes_equals: bool = True  # --name=value, also where the help writes a space
    takes_separator: bool = True  # -- ends the options
    types: bool = False  # the word after an option is its type
    takes_false: bool = False  # --name=false turns a flag off


PLAIN = Style("plain", "(?!)", takes_equals=False, takes_separator=False)
STYLES = (
    # git has revisions before `--` and paths after it, so it does not only end the options.
    Style("git", r"^ *(?:usage|or): git[ -]|^GIT(?:-[A-Z-]+)?\(1\)", takes_separator=False),
    # kubectl's own way to show the flags of cobra: -A, --all-namespaces=false:
    Style("kubectl", r"^ +(?:-\w, )?--[\w-]+=(?:false|true|''|\[\]|\d+):$", types=True, takes_false=True),
    Style("typer", r"^╭─ (?:Options|Parameters|Arguments|Commands)", types=True),
    Style("click", r"Show this message and exit\.", types=True),
    Style("argparse", r"show this help message and exit$|^(?:positional|optional) arguments:$"),
    Style(
        "cobra",
        r"^(?:Available Commands|Global Flags|Flags):$|^ +-h, --help +help for [\w-]+$"
        r"|^ +(?:-\w, )?--[\w-]+ (?:list|string|stringArray|int|uint16|decimal) {2,}",
        types=True,
        takes_false=True,
    ),
    Style("clap", r" Print help(?: \(|$)|Prints? help information$|^USAGE:$|\[possible values: "),
    Style("go", r"^Usage of .*:$", types=True, takes_false=True),
    Style("openssl", r"^ -help +Display this summary$", takes_equals=False, takes_separator=False, types=True),
    Style(
        "getopt",
        r"isplay this help(?: text)?(?: list)?(?: and exit)?\.?$|^Mandatory (?:or optional )?arguments to long options"
        r"|output version information and exit|give this help list|^ +-\w, +--[a-z-]+=[A-Z]+ ",
    ),
    Style("optparse", r"^Usage: *\n +\S+ .*\[options\]|show this help message and exit"),
    PLAIN._replace(name="docopt", mark=r"^Usage:\n {2,8}(?:\S[^\n<]*<[^>\n]{1,80}>|\w[^\n(|]*\([^\n|]*\|)"),
)

# Their help has the usual phrases, but `--` is an ordinary word for them.
WITHOUT_SEPARATOR = frozenset({"echo", "test", "[", "expr", "true", "false"})


def read_help(text: str, command: Sequence[str]) -> Documented:
    """Read the help of `command`. Without options and operands, nothing was understood."""
    text = OTHER_NAMES.sub(r"\1\2", "\n".join(cleaned_lines(text)))
    lines = [line[:MAX_LINE_CHARS] for line in text.split("\n")]
    style = next((style for style in STYLES if re.search(style.mark, text, re.MULTILINE)), PLAIN)
    all_forms = forms_in(lines)
    options, omitted = options_in(lines, is_git=style.name == "git")
    known = {name: option for option in options for name in option.names}
    own = after_command(all_forms, command)
    usages = [Usage(rest, known, has_literals=style.name == "docopt") for rest in own.values()]
    fragments = [line.strip() for line in lines if line.startswith(("[-", "  [-"))]
    fragment_usages = [Usage(line, known) for line in fragments[:200]]
    options, added = _with_usage(options, [*usages, *fragment_usages], is_binding=len(usages) == 1)
    used = [{name for option in usage.options for name in option.names} for usage in usages]
    operands = merged_operands(usages)
    disagreeing: tuple[str, ...] = ()
    if operands is None:
        disagreeing = tuple(own)
        is_required = any(operand.is_required for usage in usages for operand in usage.operands)
        operands = (Operand("arguments", is_required, True),)
    options_before = MAX_OPTIONS
    if operands and operands[-1].name == "expression":  # find: most options are part of it, and come after the paths
        operands, options_before = operands[:-1], added
    needed = [operand.name for operand in operands if operand.is_required]
    excusing = [names for usage, names in zip(usages, used, strict=True) if not usage.has(needed)]
    has_separator = any(usage.has_separator for usage in usages)
    is_offered = bool(SEPARATOR_ENTRY.search(text))
    is_usual = style.takes_separator and command[0] not in WITHOUT_SEPARATOR
    if not has_separator and (is_offered or is_usual):
        operands = tuple(each._replace(is_after_separator=True) for each in operands)
    texts, subcommands = _entries(lines)
    return Documented(
        style.name,
        style.types,
        _summary(lines, all_forms),
        tuple(_by_style(option, style) for option in options),
        tuple(each._replace(text=texts.get(each.name.lower(), "")) for each in operands),
        disagreeing,
        tuple(subcommands),
        is_separator_guessed=not has_separator and not is_offered,
        reads_stdin=bool(STDIN.search(text)),
        has_usage=bool(all_forms),
        omitted=omitted,
        legends=legends_in(lines),
        options_before=options_before,
        shown=frozenset().union(*used, _in_examples(lines, command, known)),
        excusing=frozenset().union(*excusing),
    )


def cleaned_lines(text: str) -> list[str]:
    """Return the lines without colours, boxes and unprintable characters, with spaces for tabs."""
    lines = []
    for line in text.split("\n", MAX_LINES)[:MAX_LINES]:
        line = ESCAPES.sub("", line[:MAX_LINE_CHARS]).expandtabs(8)
        line = "".join(char if char.isprintable() else " " for char in line).rstrip()
        if line.startswith(BOX):
            inside = STAR.sub("  ", line[1:].removeprefix(" ").rstrip("│┃ "))
            line = "  " + (COLUMN.sub(" ", inside) if inside.lstrip().startswith("-") else inside)
        lines.append(line)
    return lines


def _in_examples(lines: Sequence[str], command: Sequence[str], known: Mapping[str, Option]) -> set[str]:
    """Return the names of the options in lines that begin with the command; -xf are two."""
    words = (word for line in lines if line.lstrip(" $").startswith(" ".join(command) + " ") for word in line.split())
    found: set[str] = set()
    for name in (word.partition("=")[0] for word in words if word.startswith("-")):
        found.update([name] if name in known or name.startswith("--") else (f"-{letter}" for letter in name[1:]))
    return found


def _with_usage(options: Sequence[Option], usages: Sequence[Usage], *, is_binding: bool) -> tuple[list[Option], int]:
    """Add what the usage lines say: more options, values, and which options are required. Return also how many options
    only the usage lines have; they come first, as in ffmpeg -i FILE."""
    by_name = {name: at for at, option in enumerate(options) for name in (*option.names, option.negative) if name}
    merged = list(options)
    for usage in usages:
        for used in usage.options:
            position = next((by_name[name] for name in used.names if name in by_name), None)
            if position is None:
                if len(merged) < MAX_OPTIONS:
                    by_name.update(dict.fromkeys(used.names, len(merged)))
                    merged.append(used._replace(is_required=used.is_required and is_binding))
                continue
            option = merged[position]
            if used.values and not option.values and not option.negative:
                option = option._replace(values=used.values, joint=used.joint, is_value_optional=used.is_value_optional)
            is_required = option.is_required or (used.is_required and is_binding)
            is_repeated = option.is_repeated or used.is_repeated or (used.values and usage.options.count(used) > 1)
            merged[position] = option._replace(is_required=is_required, is_repeated=bool(is_repeated))
    added = merged[len(options) :]
    return [*added, *merged[: len(options)]], len(added)


def _by_style(option: Option, style: Style) -> Option:
    """Use `=` between name and value if the parser accepts it, because then any text is a value."""
    if style.name == "kubectl" and option.values and option.joint == "=":
        option = _without_default(option)
    if style.takes_false and not option.values and not option.negative and default_of(option.text, "boolean", ()):
        option = option._replace(negative=f"{option.name}=false")
    is_long = option.name.startswith("--") or style.name == "go"
    if style.takes_equals and option.joint == " " and is_long and len(option.values) == 1 and not option.is_greedy:
        return option._replace(joint="=")
    return option


def _without_default(option: Option) -> Option:
    """kubectl: --all=false is a flag, --file=[] takes several values, and --size=500 shows the default."""
    default = option.values[0].rstrip(":")
    text = f"{option.text} (default {default})"
    if default in ("false", "true"):
        return option._replace(values=(), joint="", text=text, negative=f"{option.name}=false")
    kind = "strings" if default == "[]" else "int" if re.fullmatch(r"-?\d{1,15}", default) else "string"
    return option._replace(values=(kind,), text=option.text if default in ("''", "[]") else text)


def _entries(lines: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return operands with their descriptions, and subcommands, from the sections of arguments and commands."""
    operands: dict[str, str] = {}
    subcommands: list[str] = []
    section = name = ""
    for line in lines:
        heading = SECTION.match(line)
        if line[:1].strip() and (heading or line.endswith(":")):
            section, name = heading[1].lower() if heading else "", ""
            continue
        found = ENTRY.match(line)
        if found and ("arg" in section or line.lstrip(" [-]").startswith("<")):
            name = found[1].lower()
            operands.setdefault(name, found[2] or "")
        elif found and found[2] and section.endswith("commands"):
            subcommands.append(found[1])
        elif not line and operands.get(name):
            name = ""  # the other paragraphs are about details
        elif name and line.startswith("      ") and len(operands[name]) < MAX_TEXT_CHARS:
            operands[name] = f"{operands[name]} {line.strip()}".strip()
    return operands, subcommands[:MAX_SUBCOMMANDS]


def _summary(lines: Sequence[str], forms: Sequence[str]) -> str:
    """Return the first paragraph that describes the command, and not its version, its authors or its options."""
    paragraph: list[str] = []
    is_listed = is_skipped = False  # below a heading such as "Aliases:"; in a paragraph about something else
    for line in lines[:80]:
        text = line.strip()
        if text.startswith("-") or LISTS.fullmatch(text):
            break
        is_listed = LISTING.fullmatch(text) is not None if line[:1].strip() else is_listed
        is_skipped = bool(text) and (is_skipped or (not paragraph and NO_PARAGRAPH.search(text) is not None))
        is_other = is_listed or is_skipped or text.isupper() or text.endswith(":") or text.startswith(("[", "╭", "╰"))
        is_other = is_other or bool(NO_SUMMARY.search(text)) or any(text in form for form in forms)
        if not is_other and " " in text:
            paragraph.append(text)
        elif paragraph:
            break
    return AROUND_SUMMARY.sub("", " ".join(paragraph)[:MAX_SUMMARY_CHARS])
