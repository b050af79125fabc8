"""In which way the helper may fork."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.running.scripts.jq import SDK_DIR

CONTENTS = {"plain": b"\x7fELF malloc free", "knows": b"\x7fELF malloc __register_atfork free"}


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the helper, which does not belong to the server."""
    monkeypatch.syspath_prepend(os.path.join(SDK_DIR, "warm"))
    return __import__("mcpgreen_warm.forking").forking


@pytest.mark.parametrize(
    ("names", "expected"), [((), False), (("plain",), False), (("plain", "knows"), True), (("gone",), True)]
)
def test_a_library_that_wants_to_know_of_forks_is_told(
    forking: Any, tmp_path: Path, names: tuple[str, ...], expected: bool
) -> None:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)

    assert forking._know_of_forks({str(tmp_path / name) for name in names}) is expected


def test_libraries_that_are_too_long_to_be_read_may_want_to_know(
    forking: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_bytes(CONTENTS["plain"])
    monkeypatch.setattr(forking, "MAX_LIBRARY_BYTES", 10)

    assert forking._know_of_forks({str(tmp_path / "plain")})
