"""What tests of several clients share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.support.prerequisites import TYPESCRIPT_DIR, require_node_modules


@pytest.fixture(scope="package", autouse=True)
def few_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients in Python read all authorities of the system whenever they are made, which takes longer than the rest of
    a short visit; and no server here has a certificate."""
    path = tmp_path_factory.mktemp("authorities") / "authority.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


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
