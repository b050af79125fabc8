"""Collect an item's scopes from all of its descriptions: the files next to it, and the comment in the item itself.

Scopes protect an item, so they count wherever they stand. What mentions scopes and cannot be understood costs the item.
"""

from __future__ import annotations

import os
import re

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.errors import ProjectError
from mcpgreen.text.json_types import Json

_MARK = rb"\bmcp(?:green)?\W{0,5}(?:[:={]|scope)|\bmcp_scope"  # this and the following in lower case
_SCOPES_FIELD = (
    rb"(?:^\W*(?:rem\s+)?(?:mcp\s+)?|[{,:]\s*|[\"'])(?:\w{1,40}[.-]){0,3}\w{0,40}scope[\w.-]{0,40}[\"']?\s*[:=]"
    rb"|^\W*\?\s*[\"']?\w{0,40}scope"
)
_EXPLANATION = rb"\bscope\s*:(\s+[a-z,.]+){3}"  # of an argument
_HOW_TO_ANNOTATE = "write the whole `mcp:` block as one comment in the first ten lines"
_SCOPES_TAG = rb"(?im)^[ \t]*(?:#|//|--|;|%|\*)+[ \t]*@scopes?\b"
SCOPES_RULE = {"scopes": metadata.SCOPES}


def with_all_scopes(path: str, head: bytes, fields: Json, *others: Json, is_prose: bool = False) -> Json:
    """Return the fields with the scopes of other descriptions, and of the comment in the file."""
    demands = [fields, *others, _scopes_in_comment(path, head, is_prose=is_prose)]
    given = [metadata.checked(path, {"scopes": each["scopes"]}, SCOPES_RULE) for each in demands if "scopes" in each]
    scopes = list(dict.fromkeys(scope for each in given for scope in each["scopes"]))
    return {**fields, "scopes": scopes} if scopes else fields


def descriptions_beside(path: str) -> list[Json]:
    """Return the descriptions beside the file of a registered item, which count for its scopes. Raises ProjectError."""
    directory, file_name = os.path.split(path)
    names = metadata.meta_files_for(file_name, set(os.listdir(directory)))
    found = [metadata.read_meta_file(f"{directory}/{name}") for name in names]
    for fields in found:
        metadata.require_known_scopes(path, fields, SCOPES_RULE)
    return found


def _scopes_in_comment(path: str, head: bytes, *, is_prose: bool) -> Json:
    """Return the field `scopes` of the annotation in a file, which counts beside a description in another file. Raise
    ProjectError for scopes that cannot be read, also in the comment around an annotation."""
    text = metadata.in_plain_letters(head)
    if b"scope" not in text:
        return {}
    if not is_prose and re.search(_SCOPES_TAG, head):
        raise ProjectError(path, f"@scopes is not supported in a comment: {_HOW_TO_ANNOTATE}")
    if b"mcp" not in text:
        return {}
    from mcpgreen.catalog.descriptions.comments import comments_in, inline_in  # few scripts mention scopes

    annotation = inline_in(head, is_prose=is_prose)
    fields: Json = {}
    if annotation is not None and metadata.mentions_scopes(annotation.text):
        fields = metadata.read_inline(path, head, is_prose=is_prose) or {}
        metadata.require_known_scopes(path, fields, SCOPES_RULE)
    understood = range(annotation.line, annotation.end_line + 1) if annotation else range(0)
    for comment in () if is_prose else comments_in(text):
        marks = {number for number, row in comment if re.search(_MARK, row)}
        for number, row in comment if marks else ():
            is_field = re.search(_SCOPES_FIELD, row) and not (
                marks.issubset(understood) and re.search(_EXPLANATION, row)
            )
            if is_field and number not in understood:
                raise ProjectError(path, f"the scopes on line {number} are not supported there: {_HOW_TO_ANNOTATE}")
    return {key: value for key, value in fields.items() if key == "scopes"}
