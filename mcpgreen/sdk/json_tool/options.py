"""The command line of jq, understood. What stands in named files, and whether JSON is JSON, is not looked at here."""

from __future__ import annotations

from .libjq import ASCII, COLOURED, PRETTY, SORTED, SPACE, TAB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_TEXT = "usage: jq [-acefhjnrsCMRSV] [-L DIRECTORY] [--arg NAME VALUE] [--argjson NAME JSON] FILTER [FILE...]"
VERSION_TEXT = "jq-1.8 (json-tool of mcpgreen)"  # as jq writes it, for scripts that look
# Under the long names, which are also those of `Options.switches`.
LETTERS = {
    "a": "ascii-output",
    "b": "binary",
    "c": "compact-output",
    "e": "exit-status",
    "f": "from-file",
    "h": "help",
    "j": "join-output",
    "n": "null-input",
    "r": "raw-output",
    "s": "slurp",
    "C": "color-output",
    "M": "monochrome-output",
    "R": "raw-input",
    "S": "sort-keys",
    "V": "version",
}
SWITCHES = {*LETTERS.values(), "stream", "unbuffered"}
FOLLOWED_BY = {"arg": 2, "argjson": 2, "rawfile": 2, "slurpfile": 2, "indent": 1, "library-path": 1}


class BadUsage(Exception):
    pass


class Options:
    """What is wanted. Values are still texts, each with the option that says what it is."""

    def __init__(self, words: Sequence[str]) -> None:
        self.switches: set[str] = set()
        self.program = "."
        self.files: list[str] = []
        self.named: dict[str, tuple[str, str]] = {}
        self.positional: list[tuple[str, str]] = []
        self.library_path: list[str] = []
        self.indent = 2  # 0 for one line, -1 for tabs
        self._has_program = False
        self._rest_is: str | None = None
        self._words = list(words)
        while self._words:
            self._read(self._words.pop(0))
        if not self._has_program and "from-file" in self.switches:
            raise BadUsage("--from-file takes one parameter")

    @property
    def print_flags(self) -> int:
        """How libjq is to write."""
        flags = 0 if not self.indent else PRETTY | (TAB if self.indent < 0 else self.indent * SPACE)
        for name, flag in (("ascii-output", ASCII), ("color-output", COLOURED), ("sort-keys", SORTED)):
            flags |= flag if name in self.switches else 0
        return flags & ~COLOURED if "monochrome-output" in self.switches else flags

    def _read(self, word: str) -> None:
        if word == "--":
            while self._words:
                self._read_plain(self._words.pop(0))
        elif word.startswith("--"):
            self._read_option(word[2:])
        elif word[0:1] == "-" and word[1:2].isalpha() and word[1:2].isascii():
            self._read_letters(word[1:])
        else:
            self._read_plain(word)

    def _read_letters(self, letters: str) -> None:
        for at, letter in enumerate(letters):
            if letter == "L":
                self._words[:0] = filter(None, [letters[at + 1 :]])
                self._read_option("library-path")
                return
            if letter not in LETTERS:
                raise BadUsage(f"Unknown option -{letter}")
            self._read_option(LETTERS[letter])

    def _read_plain(self, word: str) -> None:
        if not self._has_program:
            self.program, self._has_program = word or ".", True
        elif self._rest_is:
            self.positional.append((self._rest_is, word))
        else:
            self.files.append(word)

    def _read_option(self, name: str) -> None:
        count = FOLLOWED_BY.get(name, 0)
        if len(self._words) < count:
            raise BadUsage(f"--{name} takes {'two parameters' if count == 2 else 'one parameter'}")
        following, self._words = self._words[:count], self._words[count:]
        if count == 2:
            self.named.setdefault(following[0], (name, following[1]))
        elif name in ("args", "jsonargs"):
            self._rest_is = name
        elif name == "library-path":
            self.library_path += following
        elif name == "indent":
            self.indent = _indent(following[0])
        elif name == "tab":
            self.indent = -1
        elif name == "compact-output":
            self.indent = 0
        elif name in SWITCHES:
            self.switches.add(name)
        else:
            raise BadUsage(f"Unknown option --{name}")


def _indent(word: str) -> int:
    if word not in ("-1", *"01234567"):
        raise BadUsage("--indent takes a number between -1 and 7")
    return int(word)
