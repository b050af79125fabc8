"""Let pydantic build the values that are annotated with its types. Loaded if the tool has imported pydantic."""

from __future__ import annotations

import json
from typing import Any

import pydantic

from mcp_tool_functions.conversion import Unfit, resolved, shown

MAX_ERRORS = 10
MAX_DEPTH = 32


def is_of_pydantic(kind: Any, scope: Any, depth: int = 0) -> bool:
    """Tell whether pydantic has to convert values of a type: one of its own, or one with it in brackets."""
    kind = resolved(kind, scope, keeps_annotated=True)
    remarks = getattr(kind, "__metadata__", ())
    if any(type(each).__module__.partition(".")[0] in ("pydantic", "annotated_types") for each in remarks):
        return True
    if hasattr(kind, "__pydantic_validator__") or hasattr(kind, "__get_pydantic_core_schema__"):
        return True
    inner = getattr(kind, "__args__", ()) if depth < MAX_DEPTH else ()
    inner = (kind.__origin__,) if remarks else inner
    return isinstance(inner, tuple) and any(is_of_pydantic(each, scope, depth + 1) for each in inner)


def converted(value: object, kind: Any, scope: Any, where: str) -> object:
    # Evaluated there, because pydantic looks for names in quotes where it is called.
    adapter: Any = eval("adapter(kind)", {**scope, "adapter": pydantic.TypeAdapter, "kind": kind})
    try:
        return adapter.validate_json(json.dumps(value))
    except pydantic.ValidationError as problem:
        faults = []
        for fault in problem.errors(include_url=False)[:MAX_ERRORS]:
            place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"])
            given = "" if fault["type"] == "missing" else f", got {shown(fault['input'])}"
            faults.append(f"{where}{place}: {fault['msg']}{given}")
        raise Unfit(f"Invalid arguments: {'; '.join(faults)}") from None
