"""Whether everybody can use the page: with a keyboard, a small screen, a screen reader, in light and dark."""

from __future__ import annotations

import pytest

from tests.support.prerequisites import require_axe
from tests.workbench.page.window import Window

PLACES = ("catalog", "catalog/tool/echo", "try/tool/echo", "calls", "figures")
SERIOUS = """await (async () => {
    const rules = matchMedia('(prefers-color-scheme: dark)').matches ? { runOnly: ['color-contrast'] } : {};
    const { violations } = await axe.run(document, { resultTypes: ['violations'], ...rules });
    return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => [id, nodes.slice(0, 3).map((node) => [node.target.join(' '), node.failureSummary])]);
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(window: Window, scheme: str) -> None:
    """In the dark, only the contrasts can be others."""
    axe = require_axe()
    window.go("try/tool/fails")
    window.click("run")
    window.await_text("status", "failed")
    window.define(axe)
    window.prefer(scheme)
    for place in PLACES:
        window.go(place)
        assert window.js(SERIOUS) == [], place
    window.go("try/tool/fails")
    assert window.js(SERIOUS) == []
    window.click("to-call")
    window.await_text("call-detail", "exit 3")
    assert window.js(SERIOUS) == []
    window.press("Escape")
    window.prefer("light")


@pytest.mark.parametrize("place", PLACES)
def test_a_small_screen_is_wide_enough(window: Window, place: str) -> None:
    window.resize(390, 844)
    window.go(place)
    assert window.js("document.documentElement.scrollWidth") <= 390
    beside = """[...document.querySelectorAll('main button, main input, main select, nav a')]
        .filter((each) => each.checkVisibility() && !each.closest('.table-scroll, .examples, .tabs, .kinds'))
        .filter((each) => each.getBoundingClientRect().right > 391).map((each) => each.dataset.testid)"""
    assert window.js(beside) == []
    window.resize(1280, 800)


def test_panels_and_help_are_keys_away(window: Window) -> None:
    window.go("catalog")
    window.js("document.activeElement.blur()")
    window.press("g")
    window.press("f")
    window.await_js("location.hash === '#figures'")
    window.press("?")
    assert "Cancel what runs" in window.await_text("help-dialog", "Everywhere")
    window.press("Escape")
    window.await_js(f"!{window.element('help-dialog')}.open")


def test_every_control_has_a_name_for_tests(window: Window) -> None:
    for place in PLACES:
        window.go(place)
        nameless = """[...document.querySelectorAll('button, input, select, textarea, canvas[role], a')]
            .filter((each) => !each.dataset.testid && !each.matches('.skip'))
            .map((each) => each.outerHTML.slice(0, 120))"""
        assert window.js(nameless) == [], place


def test_the_colours_are_chosen_by_hand(window: Window) -> None:
    ground = "getComputedStyle(document.body).color"
    before = window.js(ground)
    window.click("theme")
    assert window.js("document.documentElement.dataset.theme") == "light" and window.js(ground) == before
    window.click("theme")
    assert window.js(ground) != before
    window.click("theme")
