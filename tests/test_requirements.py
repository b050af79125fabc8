"""Every required behaviour has a test, and every test that claims one names a row that exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.client import ALL_REVISIONS

HERE = Path(__file__).parent
ROWS: list[dict[str, Any]] = yaml.safe_load((HERE / "requirements.yaml").read_text(encoding="utf-8"))


@cache
def claims() -> list[tuple[str, str]]:
    """Each id in a `requirement` mark, with the test that carries it."""
    return list(claims_in_files())


def claims_in_files() -> Iterator[tuple[str, str]]:
    for path in sorted(HERE.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("mark.requirement"):
                    for argument in mark.args:
                        yield ast.literal_eval(argument), f"{path.relative_to(HERE)}::{node.name}"


def test_every_row_has_a_test() -> None:
    claimed = {id for id, _ in claims()}

    assert [row["id"] for row in ROWS if row["id"] not in claimed] == []


def test_every_claim_names_a_row() -> None:
    known = {row["id"] for row in ROWS}

    assert [(id, test) for id, test in claims() if id not in known] == []


def test_every_row_is_there_once() -> None:
    ids = [row["id"] for row in ROWS]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_says_one_sentence_and_when_it_applies(row: dict[str, Any]) -> None:
    first, last = row["revisions"].split("..")

    assert set(row) == {"id", "revisions", "says"}
    assert ALL_REVISIONS.index(first) <= ALL_REVISIONS.index(last)
    assert row["says"].endswith(".")
