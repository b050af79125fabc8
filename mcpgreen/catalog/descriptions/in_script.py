"""What a script says of itself: its `mcp:` comment, and the `@arg` comments of a shell script.

Rule: the script is read, never run.
"""

from __future__ import annotations

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.comments import ARGUMENT, inline_in
from mcpgreen.running.scripts.shebang import SHELLS, program_of
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcpgreen.catalog.descriptions.argument_comments import Arguments

SCHEMAS = ("inputSchema", "arguments")


class Told(NamedTuple):
    """The fields of a description, what of it could not be understood, and what may be meant as it is."""

    fields: dict[str, Any]
    complaints: list[str] = []
    hints: list[str] = []


NOTHING_TOLD = Told({}, [], [])


def told_by(path: str, head: bytes) -> Told | None:
    """What a script says that begins so; None if it says nothing. Raises ProjectError for what makes no sense."""
    fields = metadata.read_inline(path, head)
    arguments = arguments_of(path, head)
    if arguments is None:
        return Told(fields) if fields is not None else None
    complaints = list(arguments.complaints)
    described = {"description": arguments.description} if arguments.description else {}
    rest = dict(fields or {})
    for key in SCHEMAS:
        if rest.pop(key, None) is not None:
            complaints.append(f"{key} is left out: the @arg comments say which arguments there are")
    return Told({**described, **rest, "inputSchema": arguments.schema}, complaints, arguments.hints)


def arguments_of(path: str, head: bytes) -> Arguments | None:
    """What the `@arg` comments say, if it is a shell script: by its first line, or else by its suffix."""
    if ARGUMENT not in head or program_of(path, head) not in SHELLS:
        return None
    from mcpgreen.catalog.descriptions.argument_comments import arguments_in  # most projects have no such comments

    return arguments_in(head, inline_in(head))
