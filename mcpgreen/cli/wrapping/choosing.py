"""Choose a tool's arguments from all that a command takes: by rank, by name, or by asking the user.

A model copes with about a dozen arguments. `rank` puts those first that the help shows in usage lines and examples, and
those with a usual name or a short one.

Rule: an option that can run programs, write or delete files, or reach the host is taken only if it is named, or if the
command requires it. In case of doubt it counts as one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from typing import NamedTuple

from mcpgreen.cli.output import ask, did_you_mean, say, width_of
from mcpgreen.cli.wrapping.reading.help_text import Documented
from mcpgreen.cli.wrapping.reading.options import Option
from mcpgreen.cli.wrapping.reading.usage_lines import Operand
from mcpgreen.cli.wrapping.reading.value_types import words_in
from mcpgreen.cli.wrapping.tool_file import blueprint_of
from mcpgreen.errors import UsageError

USUAL_ARGUMENTS = 14
FEW_ARGUMENTS = 15  # so many are all taken
STDIN = Operand("stdin", is_required=False, text="Text for the command's standard input.")

# Short names are not here: they mean something else in each command.
RISKY = words_in(
    "exec execdir exec-path ok okdir execute checkpoint-action pre preprocessor rsh eval rsync-path remote-option "
    "pager editor ext-diff textconv config kubeconfig hostname-bin entrypoint upload-pack receive-pack plugin "
    "hook engine require import loader load-extension open-files-in-pager files-from output-document output-dir "
    "output-directory out outdir out-dir directory-prefix remote-name remote-name-all dump-header cookie-jar "
    "save-cookies etag-save hsts alt-svc libcurl stderr write-out trace trace-ascii append-output cidfile fprint "
    "fprint0 fprintf fls write-batch only-write-batch read-batch backup-dir temp-dir partial-dir "
    "temporary-directory index-file volno-file warc-file listed-incremental save report in-place delete del "
    "remove-files remove-source-files unlink-first recursive-unlink absolute-names upload-file unix-socket "
    "abstract-unix-socket privileged volume volumes-from mount cap-add security-opt device device-cgroup-rule "
    "cgroup-parent use-api-socket"
)
OUTPUT = words_in("output o")
FORMATS = re.compile(r"(?i)\bformat|\bcolumns?\b|\bfields?\b|\bone of\b")
# As the name of an option or of its value.
RISKY_WORD = re.compile(
    r"(?i)(?:.*[_-])?(?:command|cmd|program|prog|executable|shell|script|(?:config|init|log|out|output)[_-]?file)"
)
_WHICH = r"(?:(?:the|this|a|an|given|specified|external|shell|another|named|specific|output|log) ){0,3}"
_PROGRAM = r"(?:command|program|prog|script|cmd|executable|hook|action|helper)s?\b"
DOES_RISKY = re.compile(
    rf"(?i)\b(?:run|execute|invoke|launch|evaluate)s? {_WHICH}{_PROGRAM}|\bprogram to\b|\bto be (?:executed|run)\b"
    rf"|\b{_PROGRAM} to (?:run|execute|use|invoke|be)\b|\b(?:through|with|by|via) {_WHICH}(?:command|program|prog)\b"
    r"|\bas (?:the |a )?(?:pager|editor|shell)\b|\bremote shell\b|\bdebugger for\b"
    r"|\b(?:write|save|dump|log|send|append|output|redirect)(?:s|ing)?\b[^.;]{0,60}?\b(?:to|into) "
    rf"{_WHICH}<?(?:file|path|filename|directory|dir|prefix)\b"
    r"|\b(?:pid|ipc|uts|user|cgroup) (?:namespace|mode)\b"  # of the host
    r"|\bdelet(?:e|es|ing) (?:\w+ ){0,3}(?:files?|objects?|directories)\b|\bload (?:\w+ ){0,2}(?:plugin|module)"
)
COMMON = words_in(
    "all all-namespaces an archive author branch compress context count create data depth detach directory dry-run "
    "env to exclude extract file filter format from glob grep gzip header hidden host human-readable ignore-case iname "
    "include input key last ss level limit line-number list max-count max-depth maxdepth memory method mtime name "
    "name-only numeric-sort namespace network newer number oneline output patch path pattern port publish query raw "
    "recursive regexp request reverse rm selector since size sort sort-by stat tag time type unique until url user "
    "vf vn where summarize width word-regexp workdir"
)
# There is no person at a terminal, and the tool has to end.
USELESS = words_in(
    "help version usage license watch watch-only interactive tty color colour colors colours progress debug quiet "
    "silent"
)
ABOUT_ITSELF = re.compile(
    r"(?i)^(?:-- )?(?:show|print|display|get) (?:this |basic )?(?:help|version|license|options)\b|\bcolori[sz]e\b|^-h$"
)
DEPRECATED = re.compile(r"(?i)\bdeprecated\b|\bobsolete\b|\balias (?:of|for)\b|^same as -")


class Choice(NamedTuple):
    """What was chosen, and the names of what was not."""

    documented: Documented
    left: tuple[str, ...]
    risky: tuple[str, ...]
    missing: tuple[str, ...]  # required by the command
    is_harmless: bool  # nothing risky was chosen


def is_risky(option: Option) -> bool:
    """Tell whether an option seems to run programs, write or delete files, or reach the host."""
    names = {name.lstrip("-").replace("_", "-") for name in option.names}
    is_output = bool(names & OUTPUT and option.values) and not FORMATS.search(option.text)
    is_program = any(map(RISKY_WORD.fullmatch, [*names, *option.values]))
    is_deleting = any(name.startswith("delete-") for name in names)
    return bool(names & RISKY) or is_output or is_program or is_deleting or bool(DOES_RISKY.search(option.text))


def rank(options: Sequence[Option], shown: Collection[str]) -> list[Option]:
    """Return the options with the most useful ones first. `shown` has the names in usage lines and examples."""

    def points(option: Option) -> int:
        return (
            5 * (not COMMON.isdisjoint(name.lstrip("-") for name in option.names))
            + 4 * any(name in shown for name in option.names)
            + 2 * any(len(name) == 2 for name in option.names)
            + bool(option.values)
            - 3 * option.name.startswith("--no-")
            - 9 * bool(DEPRECATED.search(option.text))
        )

    return sorted(options, key=points, reverse=True)


def choose(documented: Documented, *, only: Sequence[str] | None, takes_all: bool, asks: bool) -> Choice:
    """Choose the options and operands. Raises UsageError for a name that the command does not have."""
    options = documented.options
    operands = [*documented.operands, *([STDIN] if documented.reads_stdin else [])]
    ranked = rank(options, documented.shown)
    everything: list[Option | Operand] = [*operands, *ranked]
    safe = [each for each in ranked if each.is_required or not is_risky(each)]
    useful = [each for each in safe if _is_useful(each) and documented.excusing.isdisjoint(each.names)]
    are_few = len(useful) + len(operands) <= FEW_ARGUMENTS
    taken = useful if are_few else useful[: max(USUAL_ARGUMENTS - len(operands), 0)]
    chosen = {each.name for each in everything if each in operands or each in taken or each.is_required}
    if takes_all:
        chosen |= {each.name for each in safe}
    elif only is not None:
        known = {spelling: each.name for each in reversed(everything) for spelling in _spellings(each)}
        # As the tool calls them, or would if it had them all.
        whole, before = blueprint_of("", ["all"], documented, asked_by=""), documented.options_before
        in_order: list[Option | Operand] = [*options[:before], *documented.operands, *options[before:], STDIN]
        known |= {argument.name: each.name for argument, each in zip(whole.arguments, in_order, strict=False)}
        for name in only:
            if name not in known:
                near = did_you_mean(name, [each.name.lstrip("-") for each in everything])
                raise UsageError(f"--only {name}: the command has no such option or operand{near}")
        chosen = {known[name] for name in only}
    elif asks:
        ticked = {at for at, each in enumerate(everything) if each.name in chosen}
        risks = [isinstance(each, Option) and is_risky(each) for each in everything]
        rows = [f"{each.name}  {'(risky) ' * risk}{each.text}" for each, risk in zip(everything, risks, strict=True)]
        chosen = {everything[at].name for at in pick(rows, ticked)}
    kept = tuple(each for each in options if each.name in chosen)
    is_excused = any(not documented.excusing.isdisjoint(each.names) for each in kept)
    left = [each for each in options if each.name not in chosen and {*each.names} - {"-h", "--help"}]
    taking = [each for each in documented.operands if each.name in chosen]
    return Choice(
        documented._replace(
            options=kept,
            operands=tuple(each._replace(is_required=each.is_required and not is_excused) for each in taking),
            reads_stdin=documented.reads_stdin and STDIN.name in chosen,
            options_before=sum(each.name in chosen for each in options[: documented.options_before]),
        ),
        tuple(each.name for each in left if each in safe),
        tuple(each.name for each in left if each not in safe),
        tuple(each.name for each in everything if each.is_required and each.name not in chosen and not is_excused),
        not any(map(is_risky, kept)),
    )


def _is_useful(option: Option) -> bool:
    return USELESS.isdisjoint(_spellings(option)) and not ABOUT_ITSELF.search(option.text or option.name)


def _spellings(each: Option | Operand) -> list[str]:
    """Return the names by which a person may call it: -i, --ignore-case, ignore-case, ignore_case."""
    names = each.names if isinstance(each, Option) else (each.name, each.name.lower(), each.argument)
    return [form for name in names for form in (name, name.lstrip("-"), re.sub(r"\W+", "_", name.lstrip("-")))]


def pick(rows: Sequence[str], ticked: set[int]) -> set[int]:
    """Let a person at the terminal add and remove rows by their numbers, which begin with 1. Return their places."""
    chars = width_of(sys.stdout) - 10
    say("".join(f"{at + 1:4} [{'x' if at in ticked else ' '}] {row[:chars]}\n" for at, row in enumerate(rows)))
    while (answer := ask(f"{len(ticked)} chosen. Type numbers to add or remove, such as 3 7-9", "done")) != "done":
        for word in answer.replace(",", " ").split():
            found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", word)
            places = range(int(found[1]) - 1, int(found[2] or found[1])) if found else ()
            ticked ^= (ours := set(places) & set(range(len(rows))))
            if not ours:
                say(f"{word} is not a number in the list. Type numbers, such as 3 7-9, or press Enter.\n")
    return ticked
