"""The table of docs/clients.md says what the table of clients says."""

from __future__ import annotations

import re

from mcpgreen.cli.clients.table import CLIENTS
from tests.test_docs_examples import CHECKOUT

PAGE = CHECKOUT / "docs" / "clients.md"


def test_the_page_has_each_client_with_its_files() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [A-Z][\w ]+ \| `[a-z][a-z-]*` \|", line)
    ]
    assert [(row[0], row[1]) for row in rows] == [(client.title, f"`{client.word}`") for client in CLIENTS]
    for row, client in zip(rows, CLIENTS, strict=True):
        places = client.user_places({"HOME": "~"}, "linux")
        assert row[2].startswith(f"`{places[0]}`" if places else "none of its own")
        assert row[3] == (f"`{client.project.format(name='NAME')}`" if client.project else "")
