"""One workbench for all tests of a module that leave its project as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.project import ProjectBuilder
from tests.workbench.dev_server import Dev


@pytest.fixture(scope="module")
def dev(shared_project: ProjectBuilder) -> Iterator[Dev]:
    with Dev(shared_project.root) as started:
        yield started.enter()
