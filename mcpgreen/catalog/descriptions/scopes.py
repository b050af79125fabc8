"""What a description may say of its callers: the scopes that they have to have.

Rule: what is wrong here costs the item. Left out with a warning, as an icon is, it would open the item for everybody.
"""

from __future__ import annotations

from mcpgreen.catalog.descriptions.metadata import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_SCOPES = 50


def is_scope(value: Any) -> bool:
    """A scope-token of RFC 6749: printable ASCII without space, quote and backslash."""
    return isinstance(value, str) and value != "" and all("!" <= char <= "~" and char not in '"\\' for char in value)


SCOPES = Rule(
    lambda value: isinstance(value, list) and len(value) <= MAX_SCOPES and all(map(is_scope, value)),
    f"an array of at most {MAX_SCOPES} scopes, each a text without spaces",
    {"type": "array", "maxItems": MAX_SCOPES, "items": {"type": "string", "pattern": r"^[!#-\[\]-~]+$"}},
)
