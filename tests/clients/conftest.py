"""What tests of several clients share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.prerequisites import TYPESCRIPT_DIR, require_node_modules


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory to run the drivers in: node looks for packages next to the importing file only."""
    modules = require_node_modules("@modelcontextprotocol/client", "@modelcontextprotocol/sdk")
    if modules == TYPESCRIPT_DIR / "node_modules":
        return TYPESCRIPT_DIR
    directory = tmp_path_factory.mktemp("drivers")
    for path in TYPESCRIPT_DIR.glob("*.mjs"):
        shutil.copy(path, directory)
    (directory / "node_modules").symlink_to(modules)
    return directory
