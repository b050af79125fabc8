"""The caller who sent a request, for transports with several callers. On stdio, there is one caller: None.

How a caller proves its name is up to the transport, and a token never gets here.

Rule: two principals with the same name are equal. A request may do what its own principal may, so a client that comes
with a new token keeps its sessions and its sealed state, and gets no more than the new token allows.
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
    """`scopes` are what the caller may use, None if that is everything; `claims` are what scripts may know of it;
    `expires_at` is the time at which its token expires. `is_shared`: several people have the same token."""

    name: str
    scopes: frozenset[str] | None = field(default=None, compare=False)
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    expires_at: float | None = field(default=None, compare=False)
    is_shared: bool = field(default=False, compare=False)

    @cached_property
    def claims_json(self) -> str:
        """The claims for scripts. Raises ValueError if they are too long or cannot be written: leaving some out could
        allow something that they forbid."""
        text = jsontext.dumps(dict(self.claims)).decode("ascii")
        if len(text) > MAX_CLAIMS_BYTES:
            raise ValueError(f"the claims are longer than {MAX_CLAIMS_BYTES} bytes")
        return text

    def require(self, scopes: Iterable[str]) -> None:
        """Raises InsufficientScope if the caller lacks one of these."""
        if self.scopes is None:
            return
        required = tuple(scopes)
        missing = tuple(scope for scope in required if scope not in self.scopes)
        if missing:
            raise InsufficientScope(missing, required=required)
