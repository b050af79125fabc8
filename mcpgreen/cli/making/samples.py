"""A value that a schema admits, as far as that is plain: something for a first test to begin with."""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 8
MAX_ITEMS = 16


def sample_of(schema: Any, depth: int = 0) -> Any:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {}
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    wanted = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(wanted, list):
        wanted = wanted[0] if wanted else "string"
    if wanted == "object":
        return _object(schema, depth)
    if wanted == "array":
        return [sample_of(schema.get("items", {}), depth + 1) for _ in range(_count(schema.get("minItems"), MAX_ITEMS))]
    if wanted in ("integer", "number"):
        lowest = schema.get("minimum", 1)
        return lowest if isinstance(lowest, (int, float)) else 1
    return {"boolean": True, "null": None}.get(wanted, "text".ljust(_count(schema.get("minLength"), 1024), "x"))


def _object(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """With what is required, and no more."""
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(required, list):
        return {}
    known = properties if isinstance(properties, dict) else {}
    names = [name for name in required if isinstance(name, str)]
    return {name: sample_of(known.get(name, {"type": "string"}), depth + 1) for name in names}


def _count(value: Any, most: int) -> int:
    return min(value, most) if isinstance(value, int) and value > 0 else 0
