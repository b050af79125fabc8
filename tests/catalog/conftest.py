from __future__ import annotations

import pytest

from mcpgreen.catalog import catalog


@pytest.fixture(autouse=True)
def no_look_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not turn a small project into a large one, which is answered from the last look."""
    monkeypatch.setattr(catalog, "LONG_SECS", float("inf"))
