"""What a content block must have."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.protocol.content import problem_of_block

Json = dict[str, Any]
TEXT = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"_meta": []}, "._meta must be an object"),
        ({"annotations": []}, ".annotations must be an object"),
        ({"annotations": {"audience": "user"}}, ".annotations.audience must be an array of user and assistant"),
        ({"annotations": {"audience": ["nobody"]}}, ".annotations.audience must be an array of user and assistant"),
        ({"annotations": {"priority": 1.1}}, ".annotations.priority must be a number from 0 to 1"),
        ({"annotations": {"priority": -0.1}}, ".annotations.priority must be a number from 0 to 1"),
        ({"annotations": {"priority": True}}, ".annotations.priority must be a number from 0 to 1"),
        ({"annotations": {"lastModified": 5}}, ".annotations.lastModified must be a string"),
    ],
    ids=str,
)
def test_what_any_block_may_have_has_to_be_right(more: Json, problem: str) -> None:
    assert problem_of_block({**TEXT, **more}) == problem


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"_meta": {"a": 1}},
        {"annotations": {"audience": ["user", "assistant"], "priority": 1, "lastModified": "2026-01-01T00:00:00Z"}},
        {"annotations": {"audience": [], "priority": 0, "other": None}},
    ],
    ids=str,
)
def test_what_is_right_is_no_problem(more: Json) -> None:
    assert problem_of_block({**TEXT, **more}) is None
