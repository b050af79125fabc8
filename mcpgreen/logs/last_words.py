"""The end of a script's stderr as a client may read it: without secrets and without paths of this machine.

Clients pass it to a model, which often runs on another machine. Paths of the project become relative, the home
directory becomes `~`, and any other path is reduced to its file name. Frames of our own code are removed.

Rule: only the last `READ_CHARS` of stderr are looked at, and no pattern takes more than one pass over them.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from itertools import dropwhile

import mcpgreen
from mcpgreen.logs.secrets import READ_CHARS, Secrets

TAIL_LINES = 20
TAIL_BYTES = 1024
REASON_LINES = 10
SYNTAX_ERRORS = ("SyntaxError: ", "IndentationError: ", "TabError: ")

COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# Frames of exception groups are indented with bars, too.
FRAME = re.compile(r'[\s|]*File "(.*)", line (\d+)')
TRACEBACK = re.compile(r"[\s|+]*(?:Exception Group )?Traceback \(most recent call last\)")
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
        self._known = re.compile(rf"{BEGINNING}(?P<known>{known})(?P<slash>{SLASH}+|(?![\w.-]))") if known else None

    def hidden_in(self, text: str) -> str:
        """The text without the paths of this machine."""
        text = OF_WINDOWS.sub("", text)
        if self._known is not None:
            text = self._known.sub(self._replacement, text)
        return self._others.sub(BEFORE, text)

    def _replacement(self, found: re.Match[str]) -> str:
        shown = self._shown[found["known"].replace("\\/", "/")]
        return found.expand(BEFORE) + ("" if shown == "." and found["slash"] else shown + found["slash"])

    @cached_property
    def _others(self) -> re.Pattern[str]:
        """Matches the directories of any other path. It must begin with a directory of this machine: `/users/5` may be
        a part of a URL."""
        roots = "|".join(map(re.escape, sorted(os.listdir("/"), key=len, reverse=True)))
        top = (
            rf"(?:(?<!:(?=//)){SLASH}+|(?:\.\.{SLASH}+){{3}})(?:\.\.?{SLASH}+)*"  # with fewer it may be in the project
        )
        return re.compile(rf"{BEGINNING}{top}(?:{roots}){SLASH}+(?:{PART}/+)*(?={PART})")


class LastWords:
    """The end of one stderr."""

    def __init__(self, stderr: bytes, secrets: Secrets, places: Places) -> None:
        said = COLOURS.sub("", stderr[-READ_CHARS:].decode("utf-8", "replace").replace("\0", ""))
        if len(stderr) > READ_CHARS:
            said = said.partition("\n")[2]  # the first line is cut, perhaps inside a secret
        lines = _without_our_frames(secrets.text(said).splitlines())
        self.lines = places.hidden_in("\n".join(lines)).splitlines()
        self._said = {line for line in said.split("\n") if line.strip()}
        self._secrets, self._places = secrets, places

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

    def cleaned(self, text: str) -> str:
        """A text of the script, without secrets and paths if it repeats a line of stderr. A long text is left alone."""
        if len(text) > READ_CHARS or self._said.isdisjoint(text.split("\n")):
            return text
        return self._places.hidden_in(self._secrets.text(text))

    def cleaned_output(self, text: str) -> str:
        """What the script printed before it failed, which may be the words that others write to stderr."""
        text = "\n".join(_without_our_frames(COLOURS.sub("", text).split("\n")))
        return self._places.hidden_in(self._secrets.text(text, limit_chars=len(text)))

    def _exception(self) -> list[str]:
        """The lines after the frames of the last traceback."""
        for at in range(len(self.lines) - 1, -1, -1):
            if FRAME.match(self.lines[at]) or TRACEBACK.match(self.lines[at]):
                return list(dropwhile(lambda line: line[:1].isspace(), self.lines[at + 1 :]))
        return []


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
