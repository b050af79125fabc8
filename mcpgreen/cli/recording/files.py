"""Read recordings, and compare messages by the rules in their first line.

Values of `members` count only as present. `texts` are patterns with their stand-ins.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from glob import escape
from itertools import zip_longest
from typing import Any, NamedTuple

from mcpgreen.cli.testing.expecting import PROJECT, differences, plain
from mcpgreen.engine.recorder import RULES, VERSION, is_message
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.logs.secrets import HIDDEN
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_BYTES = 300 << 20


class Recorded(NamedTuple):
    """A message, which is empty if it was too large to be recorded, or is not a message of JSON-RPC."""

    line: int
    sender: str
    message: Json


class Recording:
    """A recording, to be compared with what the project at `root` says now."""

    def __init__(self, path: str, root: str = "") -> None:
        """Raises ProjectError."""
        self._words: dict[str, str] = {}  # values of members then, and what they are now
        self.messages: list[Recorded] = []
        content = content_of(path, MAX_BYTES)
        head, *lines = content[: content.rfind(b"\n")].split(b"\n")  # the last line may not be there as a whole
        number = 1
        try:
            about = jsontext.loads(head)
            if "kind" in about:
                raise ValueError("it is a trace, which mcpgreen trace --show prints")
            if "recording" not in about or about["recording"] != VERSION:
                raise ValueError("it is of another version, or of something else")
            rules = {**RULES, **about.get("rules", {})}
            self._members = frozenset(rules["members"])
            roots = sorted({root, about.get("root", root)}, key=len, reverse=True)
            texts = [["|".join(map(re.escape, roots)), PROJECT], *rules["texts"]]
            self._texts = [(re.compile(pattern), instead) for pattern, instead in texts]
            for number, line in enumerate(lines, 2):
                value = jsontext.loads(line)
                self.messages.append(Recorded(number, value["from"], value["message"] or {}))
                if value["message"] is not None and not is_message(value["message"]):
                    raise ValueError("the message is not one of JSON-RPC")
        except (KeyError, TypeError, ValueError, re.error) as error:
            raise ProjectError(f"{path}:{number}", f"this is no recording that can be used: {error}") from error

    def differences(self, recorded: Json, live: Json) -> list[str]:
        """Say what differs, apart from secrets and what is different each time."""
        (wanted, then), (found, now) = self._plain(recorded), self._plain(live)
        self._words.update(zip(then, now, strict=False))
        return list(differences(wanted, fitted(wanted, found)))

    def translated(self, message: Json) -> Json:
        """Return a copy of what the client sent, with the words that the server uses now."""

        def word_now(_: Json, __: str, value: Any) -> Any:
            return self._words.get(value, value) if isinstance(value, str) else value

        copy: Json = jsontext.rewritten(message, word_now)
        return copy

    def shown(self, value: Json) -> str:
        return jsontext.dumps(self._plain(value)[0]).decode("ascii")

    def _plain(self, value: Json) -> tuple[Json, list[str]]:
        return plain(value, self._members, self._texts)


def is_request(message: Json) -> bool:
    return {"id", "method"} <= message.keys()


def fitted(wanted: Any, found: Any) -> Any:
    """Return what was found, with what was wanted wherever that hides a secret, and the rest of it fits."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: fitted(wanted.get(name), each) for name, each in found.items()}
    if isinstance(wanted, list) and isinstance(found, list):
        return [fitted(one, other) for one, other in zip_longest(wanted[: len(found)], found)]
    if isinstance(wanted, str) and HIDDEN in wanted:
        pattern = "*".join(map(escape, wanted.split(HIDDEN)))
        if wanted == HIDDEN or (isinstance(found, str) and fnmatchcase(found, pattern)):
            return wanted
    return found
