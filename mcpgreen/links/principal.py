"""Who is calling: what a transport that knows its callers says of one of them. On stdio there is nobody else, and None.

Not how a caller proves who it is: that is the transport's business, and a token never gets here.

Rule: two principals are the same if their names are. What the later one may do counts for what it asks for, so a client
that comes with a new token keeps its sessions and its sealed state, and gets no more than the new token allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mcpgreen.errors import InsufficientScope
from mcpgreen.text import jsontext

MAX_CLAIMS_BYTES = 16_384  # as JSON: it is part of the environment of each script


@dataclass(frozen=True)
class Principal:
    """`scopes` are what it may use, None if that is everything; `claims` are what scripts may know of it; `expires_at`
    is when it has to prove again who it is, as a time of day."""

    name: str
    scopes: frozenset[str] | None = field(default=None, compare=False)
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    expires_at: float | None = field(default=None, compare=False)

    @cached_property
    def claims_json(self) -> str:
        """For scripts. Raises ValueError for claims that are too long, or cannot be written: to leave some out could
        turn a no into a yes."""
        text = jsontext.dumps(dict(self.claims)).decode("ascii")
        if len(text) > MAX_CLAIMS_BYTES:
            raise ValueError(f"the claims are longer than {MAX_CLAIMS_BYTES} bytes")
        return text

    def require(self, scopes: Iterable[str]) -> None:
        """Raises InsufficientScope if it lacks one of these."""
        if self.scopes is None:
            return
        required = tuple(scopes)
        missing = tuple(scope for scope in required if scope not in self.scopes)
        if missing:
            raise InsufficientScope(missing, required=required)
