"""JSON pointers (RFC 6901) in references, such as `#/$defs/name`."""

from __future__ import annotations


def steps_of(reference: str) -> list[str]:
    """Return the names and indices of a pointer. Raises LookupError for a reference to another document."""
    from urllib.parse import unquote

    if reference != "#" and not reference.startswith("#/"):
        raise LookupError(reference)
    return [step.replace("~1", "/").replace("~0", "~") for step in unquote(reference).split("/")[1:]]


def pointed_at(document: object, reference: str) -> object:
    """Return the value that a reference names in its own document. Raises LookupError if there is none."""
    for step in steps_of(reference):
        if isinstance(document, list) and step.isdecimal():
            document = document[int(step)]
        elif isinstance(document, dict):
            document = document[step]
        else:
            raise LookupError(reference)
    return document
