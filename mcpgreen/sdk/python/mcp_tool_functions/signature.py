"""The parameters of a function, and the arguments of a call as it wants them."""

from __future__ import annotations

from mcp_tool_functions.conversion import Unfit, converted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = Callable[..., Any]

POSITIONAL, KEYWORDS = 0x04, 0x08  # flags of code objects: inspect knows them, and costs more than all this


class Signature:
    """The parameters of a function, as far as its code object tells."""

    def __init__(self, function: Function) -> None:
        inner: Any = function
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        code = inner.__code__
        by_place = code.co_argcount
        last = by_place + code.co_kwonlyargcount
        names = code.co_varnames
        self.kinds: dict[str, Any] = inner.__annotations__
        self.scope: dict[str, Any] = inner.__globals__
        self.by_place = names[: code.co_posonlyargcount]
        self.by_name = names[code.co_posonlyargcount : last]
        self.rest = names[last] if code.co_flags & POSITIONAL else ""
        self.others = names[last + bool(self.rest)] if code.co_flags & KEYWORDS else ""
        defaults = inner.__defaults__ or ()
        optional = {*names[by_place - len(defaults) : by_place], *(inner.__kwdefaults__ or {})}
        self.defaults = dict(zip(names[by_place - len(defaults) : by_place], defaults, strict=True))
        self.names = [*self.by_place, *self.by_name]
        self.required = [name for name in self.names if name not in optional]
        # With *rest, whatever comes before it has to be given by its place as well.
        if self.rest:
            self.by_place, self.by_name = names[:by_place], names[by_place:last]


def call_arguments(function: Function, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, by place and by name. Raises Unfit."""
    signature = Signature(function)
    for name in signature.required:
        if name not in given:
            raise Unfit("the call", f"one with {name}", given)
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in signature.names and name != signature.rest and not signature.others:
            raise Unfit("the call", f"one without {name}", given)
        known = name in signature.names
        kind = signature.kinds.get(name if known else signature.others, object)
        if name == signature.rest:
            item = signature.kinds.get(name, object)
            values[name] = [converted(each, item, signature.scope, name) for each in value]
        else:
            values[name] = converted(value, kind, signature.scope, name)
    placed: list[Any] = []
    for name in signature.by_place:
        if name not in values and name not in signature.defaults:
            break
        placed.append(values.pop(name, signature.defaults.get(name)))
    if signature.rest:
        placed += values.pop(signature.rest, [])
    return placed, values
