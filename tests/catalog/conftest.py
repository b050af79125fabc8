from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.trees import TreeBuilder


@pytest.fixture
def tree(tmp_path: Path) -> TreeBuilder:
    return TreeBuilder(tmp_path.resolve() / "project")
