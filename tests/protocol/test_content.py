"""What a content block must have."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgreen.protocol.content import CONTENT_TYPES, problem_of_block
from mcpgreen.protocol.revision_fields import fit_block
from mcpgreen.protocol.revisions import REVISIONS

Json = dict[str, Any]
TEXT = {"type": "text", "text": "x"}
AUDIENCE = '.annotations.audience must be an array of "user" and/or "assistant"'


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"_meta": []}, "._meta must be an object"),
        ({"annotations": []}, ".annotations must be an object"),
        ({"annotations": {"audience": "user"}}, AUDIENCE),
        ({"annotations": {"audience": ["nobody"]}}, AUDIENCE),
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


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({"type": "video", "data": ""}, ".type 'video' is unknown"),
        ({"type": "text"}, ".text must be a string"),
        ({"type": "image", "data": "eA=="}, ".mimeType must be a string"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "%"}, ".data must be base64"),
        ({"type": "image", "mimeType": "image/png", "data": "AAA"}, ".data must be base64"),
        ({"type": "image", "mimeType": "image/png", "data": 5}, ".data must be base64"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "A-_A"}, ".data must be base64"),
        ({"type": "resource_link", "uri": "x:y"}, ".name must be a string"),
        ({"type": "resource_link", "uri": "x:y", "name": "n", "title": None}, ".title must be a string"),
        ({"type": "resource_link", "uri": "x:y", "name": "n", "size": -1}, ".size must be a number of bytes"),
        ({"type": "resource"}, ".resource must be an object"),
        ({"type": "resource", "resource": {"text": "x"}}, ".resource.uri must be a string"),
        ({"type": "resource", "resource": {"uri": "x:y"}}, ".resource needs text, or a blob in base64"),
        ({"type": "resource", "resource": {"uri": "x:y", "text": "", "_meta": 1}}, ".resource._meta must be an object"),
    ],
    ids=str,
)
def test_each_type_has_members_that_it_needs(block: Json, problem: str) -> None:
    assert problem_of_block(block) == problem


def test_every_revision_gets_a_type_that_it_knows() -> None:
    examples: dict[str, Json] = {
        "text": {"text": "x"},
        "image": {"data": "eA==", "mimeType": "image/png"},
        "audio": {"data": "eA==", "mimeType": "audio/wav"},
        "resource": {"resource": {"uri": "x:y", "text": "x"}},
        "resource_link": {"uri": "x:y", "name": "n"},
    }
    assert examples.keys() == CONTENT_TYPES.keys()
    for kind, members in examples.items():
        for revision in REVISIONS:
            fitted = fit_block({"type": kind, **members}, revision)
            since = CONTENT_TYPES[fitted["type"]].since
            assert problem_of_block(fitted) is None
            assert since is None or since in revision.features
