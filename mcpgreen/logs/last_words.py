"""The end of a script's stderr as clients may see it: without secrets or local paths.

Clients pass it to a model, which often runs on another machine. Paths of the project become relative, the home
directory becomes `~`, and any other path is reduced to its file name. Frames of our own code are removed.

Rule: only the last `READ_CHARS` of stderr are shown. Output of a failed script is cleaned in pieces, and no secret may
lie across the end of one. No pattern takes two passes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import dropwhile

import mcpgreen
from mcpgreen.logs.secrets import READ_CHARS, Secrets

PIECE_CHARS = 1 << 18
TAIL_LINES = 20
TAIL_BYTES = 1024
REASON_LINES = 10
SYNTAX_ERRORS = ("SyntaxError: ", "IndentationError: ", "TabError: ")

COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# Frames of exception groups are indented with bars, too.
FRAME = re.compile(r'[\s|]*File "(.*)", line (\d+)')
TRACEBACK = re.compile(r"[\s|+]*(?:Exception Group )?Traceback \(most recent call last\)")
# A line of an exception in a group, or of what was written behind the group.
IN_GROUP = re.compile(r" *\| (\S.*)|([^\s|+].*)")
OUR_CODE = os.path.dirname(os.path.abspath(mcpgreen.__file__))
STARTING = ("<frozen runpy>", "<frozen importlib", f"{OUR_CODE}/", f"{os.path.realpath(OUR_CODE)}/")
# A frame of a stack in JavaScript, Java, Ruby, Perl and PHP, and what stands behind the frames.
OTHER_FRAME = re.compile(
    r"(?:\t| {2,})(?:at |(?:\d+: )?from .*:\d+|.* called at .* line \d+|\.\.\. \d+ )|\t \.\.\. \d+ |Node\.js v\d"
    r"|#\d+ (?:\{main\}|.*\(\d+\): )"
)
# In JSON a slash may be escaped. A path does not begin within a word or another path, but may stand directly behind an
# option (-I/usr/include).
SLASH = r"(?:\\?/)"
BEGINNING = (
    rf"(?:(?P<scheme>file:{SLASH}{{2}})[\w.-]{{0,64}}|(?<![\w./~-])(?P<option>-[A-Za-z]{{1,16}})"
    r"|(?<![\w./~\\-])|(?<=\\[nrt])|(?<=\.\.\.))"
)
BEFORE = r"\g<scheme>\g<option>"
PART = r"[^/\s\"'`:;,<>()\[\]{}|=*?]+"
# Between quotes a path may contain anything, unless it is the beginning of a sentence: '/usr/lib/x: no such file'.
PART_IN_QUOTES = r"(?:(?!(?P=quote))[^/\n:;,]|[:;,](?!\s)){1,255}"
PART_OF_WINDOWS = r"[^\\/\s\"'`:;,<>()|=*?]+"
OF_WINDOWS = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z]:[\\/]+(?:{PART_OF_WINDOWS}[\\/]+)+(?={PART_OF_WINDOWS})")


class Places:
    """Where the project and the home directory are, and how their paths are shown."""

    def __init__(self, project_root: str, home: str) -> None:
        self._shown = {}
        for path, shown in ((home, "~"), (project_root, ".")):
            for spelling in (path, os.path.realpath(path)):
                if len(spelling.rstrip("/")) > 1:
                    self._shown[spelling.rstrip("/")] = shown
        spellings = map(re.escape, sorted(self._shown, key=len, reverse=True))
        known = "|".join(spellings).replace("/", SLASH)
        self._known = re.compile(rf"{BEGINNING}(?P<known>{known or '(?!)'})(?P<slash>{SLASH}+|(?![\w.-]))")

    def hidden_in(self, text: str, turn: Callable[[], object] = tuple) -> str:
        """The text without the paths of this machine. `turn` is called before each pass over a long text."""
        for pattern, shown in self._passes:
            turn()
            text = pattern.sub(shown, text)
        return text

    def _replacement(self, found: re.Match[str]) -> str:
        shown = self._shown[found["known"].replace("\\/", "/")]
        return found.expand(BEFORE) + ("" if shown == "." and found["slash"] else shown + found["slash"])

    @cached_property
    def _passes(self) -> list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]:
        """What is replaced, and by what. Of other paths the directories, between quotes and elsewhere. They must begin
        with a directory of this machine: `/users/5` may be a part of a URL; so may `../../usr` be in the project."""
        roots = "|".join(map(re.escape, sorted(os.listdir("/"), key=len, reverse=True)))
        top = rf"(?:(?<!:(?=//)){SLASH}+|(?:\.\.{SLASH}+){{3}})(?:\.\.?{SLASH}+)*(?:{roots}){SLASH}+"
        quoted = rf"(?<=(?P<quote>[\"'`]))(?P<scheme>file:{SLASH}{{2}}[\w.-]{{0,64}})?{top}(?:{PART_IN_QUOTES}/+)*"
        in_quotes = re.compile(rf"{quoted}(?={PART_IN_QUOTES}(?P=quote))"), r"\g<scheme>"
        elsewhere = re.compile(rf"{BEGINNING}{top}(?:{PART}/+)*(?={PART})"), BEFORE
        return [(OF_WINDOWS, ""), (self._known, self._replacement), in_quotes, elsewhere]


class LastWords:
    """The end of one stderr. `secrets` are those of the call. The server's own are hidden before the paths, in case
    they contain one; those of the call after them, because a client could choose a part of a path as its secret."""

    def __init__(self, stderr: bytes, secrets: Secrets, places: Places, *, of_server: Secrets | None = None) -> None:
        self._secrets, self._places, self._of_server = secrets, places, of_server or secrets
        self.lines = self._cleaned(stderr, READ_CHARS).splitlines()
        self._said = {line for line in _end_of(stderr, READ_CHARS).split("\n") if line.strip()}

    @property
    def tail(self) -> str:
        """The last lines, for debugging."""
        return _cut("".join(f"{line}\n" for line in self.lines[-TAIL_LINES:]), keeps_end=True)

    @property
    def last(self) -> str:
        """The last line that says anything."""
        return next((line.strip() for line in reversed(self.lines) if line.strip()), "")

    @property
    def reason(self) -> str:
        """Why the script failed, for a model: the exception at the end of a traceback, else the last lines that are not
        frames of a stack. A syntax error includes its place. Notes of the SDK count only if there is nothing else.
        Empty if stderr is empty."""
        if self.last.startswith(SYNTAX_ERRORS):
            place = next((found for line in reversed(self.lines) if (found := FRAME.match(line))), None)
            return f"{self.last} ({os.path.basename(place[1])}, line {place[2]})" if place else self.last
        exception = self._exception()
        lines = [line for line in exception or self.lines if line.strip() and not _is_note_of_the_sdk(line)]
        if not exception:
            lines = [line for line in lines if not OTHER_FRAME.match(line)] or lines
        if exception and len(lines) > REASON_LINES:
            lines = [lines[0], *lines[1 - REASON_LINES :]]
        return _cut("\n".join(lines[-REASON_LINES:]).strip() or self.last, keeps_end=not exception)

    def are_in(self, text: str) -> bool:
        """Tell whether a text repeats a line of stderr."""
        return not self._said.isdisjoint(text.split("\n"))

    def cleaned_output(self, text: str, turn: Callable[[], object] = tuple) -> Iterator[str]:
        """What the script printed before it failed, which may be the words that others write to stderr, in pieces.
        `turn` is called between the passes over each."""
        start = 0
        while start < len(text):
            end = self._end_of_piece(text, start)
            yield self._cleaned(text[start:end], PIECE_CHARS, turn)
            start = end

    def _end_of_piece(self, text: str, start: int) -> int:
        """Where the piece that begins here can end: after a line or a word, and not within a secret."""
        most = start + PIECE_CHARS
        if len(text) <= most:
            return len(text)
        end = text.rfind("\n", start, most) + 1 or text.rfind(" ", start, most) + 1 or most
        reach = self._of_server.longest_with_lines
        around = text[max(start, end - reach) : end + reach]
        if self._of_server.without_known_values(around) != around:
            end -= reach
        key = text.rfind("-----BEGIN ", start, end)
        return key if key > start and text.find("-----END ", key, end) < 0 else max(end, start + 1)

    def _cleaned(self, said: str | bytes, limit: int, turn: Callable[[], object] = tuple) -> str:
        text = "\n".join(_without_our_frames(_end_of(said, limit).split("\n")))
        text = self._of_server.without_known_values(text)
        if len(said) > limit and (rest := self._of_server.longest_with_lines):  # of one that began before the end
            text = text[rest:].partition("\n")[2]
        text = self._places.hidden_in(text, turn)
        return self._secrets.text(text, limit_chars=len(text), turn=turn)

    def _exception(self) -> list[str]:
        """The lines after the frames of the last traceback; of an exception group, also those of its members."""
        lines = self.lines
        frames = [at for at, line in enumerate(lines) if FRAME.match(line) or TRACEBACK.match(line)]
        if not frames:
            return []
        if lines[frames[-1]].lstrip()[:1] not in ("|", "+"):
            return list(dropwhile(lambda line: line[:1].isspace(), lines[frames[-1] + 1 :]))
        group = max((at for at in frames if lines[at].lstrip().startswith("+ Exception Group")), default=0)
        below = [IN_GROUP.match(line) for line in lines[group:] if not TRACEBACK.match(line)]
        return [found[1] or found[2] for found in below if found]


def _end_of(said: str | bytes, limit: int) -> str:
    """The end of a text, from a whole line, and not from within a private key. Without colours."""
    end = said[-limit:]
    text = end if isinstance(end, str) else end.decode("utf-8", "replace")
    if len(said) > limit:
        text = text.partition("\n")[2]  # the first line is cut, perhaps inside a secret
        text = text[max(0, text.find("-----END ", 0, READ_CHARS)) :]
    return COLOURS.sub("", text.replace("\0", ""))


def _without_our_frames(lines: list[str]) -> list[str]:
    kept = []
    hidden_indent = None  # the indent of the frame that is being left out
    for line in lines:
        indent = len(line) - len(line.lstrip(" |"))
        if hidden_indent is not None and indent > hidden_indent:
            continue
        frame = FRAME.match(line)
        is_ours = frame and (frame[1].startswith(STARTING) or frame[1].endswith("/runpy.py"))
        hidden_indent = indent if is_ours else None
        if not is_ours:
            kept.append(line)
    return kept


def _is_note_of_the_sdk(line: str) -> bool:
    """Whether the SDK wrote the line, as in "mcp_elicit: There was no answer in time". Scripts may have handled it."""
    name, colon, _ = line.partition(": ")
    return bool(colon) and name.startswith("mcp_") and name.isidentifier()


def _cut(text: str, *, keeps_end: bool) -> str:
    encoded = text.encode("utf-8", "replace")
    return (encoded[-TAIL_BYTES:] if keeps_end else encoded[:TAIL_BYTES]).decode("utf-8", "ignore")
