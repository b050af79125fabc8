"""The fixtures of the suite, whose tools have names such as test_simple_text.py, are no tests of ours."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

collect_ignore = ["project"]


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with scripts that nobody else may write to."""
    copy = tmp_path_factory.mktemp("conformance") / "project"
    shutil.copytree(HERE / "project", copy, ignore=shutil.ignore_patterns(".registry"))
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    return copy
