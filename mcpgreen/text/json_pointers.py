"""JSON pointers (RFC 6901) as references have them: `#/$defs/name`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pointed_at(document: Any, reference: str) -> Any:
    """What a reference leads to in its own document. Raises LookupError if that is nothing, or elsewhere."""
    from urllib.parse import unquote

    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    for step in unquote(reference).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and step.isdecimal():
            document = document[int(step)]
        elif isinstance(document, dict):
            document = document[step]
        else:
            raise LookupError(reference)
    return document
