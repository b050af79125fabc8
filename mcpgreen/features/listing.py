"""The four lists, for a call; what is in a page is said by `catalog.lists.pages`."""

from __future__ import annotations

from mcpgreen.catalog.lists.pages import KINDS, page
from mcpgreen.features.call import Call


def list_page(call: Call) -> bytes:
    """One page, encoded."""
    services = call.services
    return page(services.snapshot(KINDS[call.method]), call.view.revision, call.params, services.list_terms)
