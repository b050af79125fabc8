"""A project without any problem, in which tests plant some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.checking.correct_project import correct_project
from tests.support.project import ProjectBuilder


@pytest.fixture
def correct(tmp_path: Path) -> ProjectBuilder:
    return correct_project(tmp_path / "project")
