"""References within a document, as functions."""

from __future__ import annotations

import pytest

from mcpgreen.text.json_pointers import pointed_at

DOCUMENT = {"a/b": {"c~d": [10, {"e f": "found"}]}, "1": "one"}


@pytest.mark.parametrize(
    ("reference", "value"),
    [("#", DOCUMENT), ("#/1", "one"), ("#/a~1b/c~0d/0", 10), ("#/a~1b/c~0d/1/e%20f", "found")],
)
def test_a_reference_leads_to_its_value(reference: str, value: object) -> None:
    assert pointed_at(DOCUMENT, reference) == value


@pytest.mark.parametrize("reference", ["", "1", "#1", "other#/1", "#/2", "#/1/0", "#/a~1b/c~0d/2", "#/a~1b/c~0d/-1"])
def test_a_reference_to_nothing_or_elsewhere_is_a_fault(reference: str) -> None:
    with pytest.raises(LookupError):
        pointed_at(DOCUMENT, reference)
