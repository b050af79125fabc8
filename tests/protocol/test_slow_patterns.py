"""Which patterns `validate` warns about."""

from __future__ import annotations

import pytest

from mcpgreen.protocol.schemas.quick import slow_patterns_in


@pytest.mark.parametrize(
    "pattern",
    [
        r"^([a-zA-Z0-9]+[._-]?)+@example\.com$",
        r"(a+)+$",
        r"(a*)*",
        r"(?:x|(?:[0-9]{1,}y?))*z",
        r"((a?){30})+",
        r"(.*?,)*x",
        r"(?=(a+)+b)",
    ],
)
def test_a_repeat_in_a_repeat_is_slow(pattern: str) -> None:
    assert slow_patterns_in({"pattern": pattern}) == [pattern]


@pytest.mark.parametrize(
    "pattern", [r"^[a-z]+@[a-z.]+$", r"^\d{4}-\d{2}$", r"(ab?){3}", r"([a-z]{1,8}-?){1,4}", "(", "a" * 5000, ""]
)
def test_other_patterns_are_not(pattern: str) -> None:
    assert slow_patterns_in({"pattern": pattern}) == []


def test_patterns_are_found_wherever_a_schema_has_them() -> None:
    schema = {
        "properties": {"a": {"pattern": "(1+)+"}, "b": {"items": {"anyOf": [{"pattern": "(2+)+"}]}}},
        "patternProperties": {"(3+)+": {"propertyNames": {"pattern": "(4+)+"}}},
        "default": {"pattern": "(no schema+)+"},
    }

    assert sorted(slow_patterns_in(schema)) == ["(1+)+", "(2+)+", "(3+)+", "(4+)+"]
