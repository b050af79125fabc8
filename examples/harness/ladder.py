"""The examples: which there are, how somebody may call one, and the conversation that its README shows.

An example is a folder `NN-name` with a README.md. One `console` block of that page begins with the command that
plays the example, and goes on with its conversation, a line each:

    --> what the client sends            $ what is typed in the project meanwhile
    <-- what the server answers          anything else: what that printed

Other such blocks begin with `$ examples/send` and go on with what that prints.

Rule: the page is the only place where a conversation is written down. Whoever plays it takes `-->` and `$` from there;
the tests compare all the rest.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).resolve().parent.parent
FOLDER = re.compile(r"(\d\d)-([a-z0-9-]+)")
CONVERSATION = re.compile(r"^```console\n\$ examples/run [^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SENT = re.compile(r"^```console\n\$ examples/send ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"^Needs:(.*)$", re.MULTILINE)


class UnknownExample(Exception):
    """Nobody has heard of such an example; says which there are."""


class Step(NamedTuple):
    """One line of a conversation."""

    kind: str  # "-->", "<--", "$" or "" for what a command printed
    text: str


class Sent(NamedTuple):
    """A use of `examples/send` on a page."""

    example_id: str
    lines: list[str]
    is_raw: bool
    printed: str


class Example(NamedTuple):
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def readme(self) -> Path:
        return self.folder / "README.md"

    def page(self) -> str:
        return self.readme.read_text(encoding="utf-8")

    def conversation(self) -> str:
        """As the page has it, without the command that plays it."""
        found = CONVERSATION.search(self.page())
        if found is None:
            raise ValueError(f"{self.name}/README.md has no console block that begins with $ examples/run")
        return found[1]

    def steps(self) -> list[Step]:
        return [_step_of(line) for line in self.conversation().splitlines()]

    def sent(self) -> list[Sent]:
        return [_sent_of(shlex.split(found[1]), found[2]) for found in SENT.finditer(self.page())]

    def rewrite(self, block: re.Pattern[str], printed: list[str]) -> None:
        """Put what was printed into the blocks of this kind, in the order of the page."""
        texts = iter(printed)
        page = block.sub(lambda found: f"{found[0][: -len(found[found.re.groups]) - 3]}{next(texts)}```", self.page())
        self.readme.write_text(page, encoding="utf-8")

    def needs(self) -> list[str]:
        """Programs, as the line that begins with `Needs:` names them."""
        found = NEEDS.search(self.page())
        return re.findall(r"`([^`]+)`", found[1]) if found else []


def all_examples() -> list[Example]:
    return [Example(each) for each in sorted(EXAMPLES.iterdir()) if each.is_dir() and FOLDER.fullmatch(each.name)]


def find(wanted: str) -> Example:
    """By its number, with or without the leading zero, by its name, or by both. Raises UnknownExample."""
    for example in all_examples():
        number, name = example.name.split("-", 1)
        if wanted in (number, str(int(number)), name, example.name):
            return example
    known = "\n".join(f"  {example.name}" for example in all_examples())
    raise UnknownExample(f"there is no example {wanted!r}. There are:\n{known}")


def _step_of(line: str) -> Step:
    for kind in ("-->", "<--", "$"):
        if line.startswith(f"{kind} "):
            return Step(kind, line[len(kind) + 1 :])
    return Step("", line)


def _sent_of(arguments: list[str], printed: str) -> Sent:
    words = [each for each in arguments if each != "--raw"]
    return Sent(words[0], words[1:], words != arguments, printed)
