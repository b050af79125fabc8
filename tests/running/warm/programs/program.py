"""What a program of the table is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

FIRST_LINE = "#!/usr/bin/env python3\n"


@dataclass(frozen=True)
class Program:
    """A script, what lies beside it, and what is said of it."""

    source: str = ""  # without its first line
    content: bytes | None = None  # the whole file, if it cannot be written as a source
    name: str = "tool.py"
    link_to: str = ""  # what the script is a symbolic link to; then that has the source
    files: Mapping[str, str | bytes] = field(default_factory=dict)  # beside it
    env: Mapping[str, str] = field(default_factory=dict)
    since: tuple[int, int] = (3, 8)
    reads_stdout: bool = True  # else nobody is at the other end of its stdout
    scrubbed: str = ""  # a pattern of what differs in every run

    @property
    def bytes(self) -> bytes:
        return (FIRST_LINE + dedent(self.source).lstrip("\n")).encode() if self.content is None else self.content


Table = Mapping[str, str | Program]
