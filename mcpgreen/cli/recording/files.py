"""Read recordings, and compare frames by the rules in their first line.

Rules: values of `members` count only as present, and what a client sends back of them is translated; `texts` are
patterns with their stand-ins; `notifications` are those that matter; `waitSecs` is how long to wait for the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mcpgreen.cli.testing.expecting import ABSENT, differences, without_root
from mcpgreen.engine.recorder import RULES, VERSION
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of
from mcpgreen.logs.secrets import HIDDEN
from mcpgreen.protocol.messages import normal_id
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_BYTES = 300 << 20
ANY = "<any>"


class Recorded(NamedTuple):
    """One frame. `frame` is None if it was too long to be recorded, or is no message of JSON-RPC."""

    number: int  # of the line
    sender: str
    frame: Json | None


class Recording:
    def __init__(self, path: str) -> None:
        """Raises ProjectError."""
        lines = content_of(path, MAX_BYTES).splitlines()
        values = [self._value(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
        head = values.pop(0) if values else {}
        if head.get("recording") != VERSION:
            raise ProjectError(path, "this is not a recording of mcpgreen record, or of another version")
        self.root = str(head.get("root", ""))
        try:
            self.rules: Json = {**RULES, **head.get("rules", {})}
            self.secs = float(self.rules["waitSecs"])
            self._texts = [(re.compile(pattern), instead) for pattern, instead in self.rules["texts"]]
        except (re.error, TypeError, ValueError) as error:
            raise ProjectError(f"{path}:1", f"the rules cannot be used: {error}") from error
        self.frames: list[Recorded] = []
        for number, each in enumerate(values, 2):
            frames = each.get("frame")
            for frame in frames if isinstance(frames, list) else [frames]:  # of a batch
                if "from" in each:
                    self.frames.append(Recorded(number, each["from"], frame if is_usual(frame) else None))

    @staticmethod
    def _value(path: str, number: int, line: bytes) -> Json:
        try:
            value = jsontext.loads(line)
        except ValueError as error:
            raise ProjectError(f"{path}:{number}", f"not JSON: {error}") from error
        if not isinstance(value, dict):
            raise ProjectError(f"{path}:{number}", "not an object")
        return value

    def differences(self, recorded: Any, live: Any, root: str) -> Iterator[str]:
        """Yield what differs, apart from volatile parts."""
        wanted, found = self.plain(recorded, self.root), self.plain(live, root)
        yield from differences(wanted, with_hidden(wanted, found))

    def plain(self, value: Any, root: str) -> Any:
        """Return a copy in which all volatile parts have their stand-ins."""
        return self._plain(without_root(value, root) if root else value)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            members = self.rules["members"]
            return {name: ANY if name in members else self._plain(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, str):
            for pattern, instead in self._texts:
                value = pattern.sub(instead, value)
        return value

    def links(self, recorded: Any, live: Any) -> Iterator[tuple[str, str]]:
        """Yield the recorded and the live value of each volatile member, which a client may send back."""
        if isinstance(recorded, dict) and isinstance(live, dict):
            for name in recorded.keys() & live.keys():
                one, other = recorded[name], live[name]
                if name in self.rules["members"] and isinstance(one, str) and isinstance(other, str):
                    yield one, other
                else:
                    yield from self.links(one, other)
        elif isinstance(recorded, list) and isinstance(live, list):
            for one, other in zip(recorded, live, strict=False):
                yield from self.links(one, other)


def is_usual(frame: Any) -> bool:
    """Tell whether this is a message of JSON-RPC, and not something that a client tried on us."""
    if not isinstance(frame, dict) or not isinstance(frame.get("method", ""), str):
        return False
    params = frame.get("params", {})
    is_sound = isinstance(params, dict) and isinstance(params.get("_meta", {}), dict)
    return is_sound and ("id" not in frame or normal_id(frame["id"]) is not None)


def translated(value: Any, words: dict[str, str]) -> Any:
    """Return a copy in which the texts that are keys have become their values."""
    if isinstance(value, dict):
        return {name: translated(each, words) for name, each in value.items()}
    if isinstance(value, list):
        return [translated(each, words) for each in value]
    return words.get(value, value) if isinstance(value, str) else value


def with_hidden(wanted: Any, found: Any) -> Any:
    """Return what was found, with what was wanted wherever the recording hides a secret, and the rest fits."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: with_hidden(wanted.get(name, ABSENT), each) for name, each in found.items()}
    if isinstance(wanted, list) and isinstance(found, list):
        return [with_hidden(wanted[index] if index < len(wanted) else ABSENT, each) for index, each in enumerate(found)]
    if isinstance(wanted, str) and HIDDEN in wanted:
        if wanted == HIDDEN:
            return wanted
        pattern = ".*?".join(map(re.escape, wanted.split(HIDDEN)))
        if isinstance(found, str) and re.fullmatch(pattern, found, re.DOTALL):
            return wanted
    return found
