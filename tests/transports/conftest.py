"""An issuer of access tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.issuer import Issuer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.stop()
