"""How one method is served: find its target, decide whether that takes a process, serve it.

Each feature module declares its routes; `engine.router` maps methods to them and does the rest. `Target` is what a
request is about: a tool, a prompt, a resource. Methods without one have None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mcpgreen.protocol.revisions import Revision
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.features.call import Call, Slot

Target = TypeVar("Target")


@dataclass(frozen=True)
class Route(Generic[Target]):
    """How one method is served. `find` raises RpcError for a target that does not exist."""

    find: Callable[[Call], Target]
    serve: Callable[[Call, Target], Json | bytes]
    needs_process: Callable[[Call, Target], bool] = lambda call, target: False  # or anything else to wait for
    uses_catalog: bool = True
    may_repeat: Callable[[Call, Target], bool] | None = None  # if it may ask: whether it may be run twice
    turn: Callable[[Call, Target], Slot | None] = lambda call, target: None  # to wait for besides a slot
    fit: Callable[[Json, Revision], Json] = lambda result, revision: result
    has_own_limit: bool = False  # `serve` bounds the result itself


def without_target(serve: Callable[[Call], Json | bytes], *, uses_catalog: bool = False) -> Route[None]:
    """A route for a method without a target."""
    return Route(lambda call: None, lambda call, target: serve(call), uses_catalog=uses_catalog)
