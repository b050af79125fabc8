"""Let pydantic make the values that are annotated with its types. Loaded if the tool has imported pydantic."""

from __future__ import annotations

import json

from mcp_tool_functions.conversion import Unfit, resolved, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcp_tool_functions.conversion import Scope

MAX_ERRORS = 10
MAX_DEPTH = 32


class Invalid(Unfit):
    """Pydantic refuses a value."""

    def __init__(self, where: str, problem: Any) -> None:
        lines = []
        for each in problem.errors(include_url=False)[:MAX_ERRORS]:
            place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in each["loc"])
            given = "" if each["type"] == "missing" else f", got {shown(each['input'])}"
            lines.append(f"{where}{place}: {each['msg']}{given}")
        Exception.__init__(self, "Invalid arguments: " + "; ".join(lines))


def is_of_pydantic(kind: Any, scope: Scope, depth: int = 0) -> bool:
    """Tell whether pydantic has to convert values of a type: one of its own, or one with it in brackets."""
    kind = resolved(kind, scope, keeps_annotated=True)
    remarks = getattr(kind, "__metadata__", ())
    if any(type(each).__module__.partition(".")[0] in ("pydantic", "annotated_types") for each in remarks):
        return True
    if hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__get_pydantic_core_schema__"):
        return True
    inner = getattr(kind, "__args__", ()) if depth < MAX_DEPTH else ()
    inner = (kind.__origin__,) if remarks else inner
    return not isinstance(inner, tuple) or any(is_of_pydantic(each, scope, depth + 1) for each in inner)


def converted(value: object, kind: Any, scope: Scope, where: str) -> object:
    import pydantic

    # Evaluated there, because pydantic looks for names in quotes where it is called.
    adapter: Any = eval("adapter(kind)", {**scope, "adapter": pydantic.TypeAdapter, "kind": kind})
    try:
        return adapter.validate_json(json.dumps(value))
    except pydantic.ValidationError as problem:
        raise Invalid(where, problem) from None
