"""One browser for all pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcpgreen.catalog.apps import templates
from tests.support.browser import Browser, View
from tests.support.prerequisites import require_browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    started = Browser(require_browser())
    yield started
    started.close()


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., View]]:
    """Open a template. Whatever a test does, the console stays clean and nothing is loaded."""
    views: list[View] = []

    def show_template(template: str, config: dict[str, Any], **options: Any) -> View:
        view = View(browser, templates.render(template, config, title="A page"), **options)
        views.append(view)
        return view

    yield show_template
    found = [complaint for view in views for complaint in view.complaints()]
    for view in views:
        view.close()
    assert found == []
