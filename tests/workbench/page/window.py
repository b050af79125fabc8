"""The page of the workbench in a browser, as somebody sees and uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.browser import Browser
from tests.support.waiting import eventually

Json = dict[str, Any]

KEY_CODES = {
    "Enter": 13,
    "Tab": 9,
    "Escape": 27,
    "ArrowDown": 40,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "End": 35,
    "Home": 36,
}
CONTROL = 2


class Window:
    """A tab that shows the workbench. Controls are found by their `data-testid`."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._session = browser.take_page()
        self.origin = url.partition("?")[0]
        self.resize(1280, 800)
        self.open(url)

    def open(self, url: str) -> None:
        self._command("Page.navigate", {"url": url})
        eventually(lambda: self.js("document.querySelector('[data-testid=live]')?.textContent") == "live")
        eventually(lambda: self.js("(await import('/state.js')).state.isLoaded"))

    def go(self, place: str) -> None:
        """Show another place of the page, as `try/tool/stats`, without loading it again."""
        self.js(f"location.hash = {json.dumps(place)}")
        self.await_js(f"document.querySelector('[data-testid={place.partition('/')[0]}-panel]').checkVisibility()")

    def js(self, expression: str) -> Any:
        """The value of an expression, which may contain `await`."""
        asked = {"expression": f"(async () => ({expression}))()", "awaitPromise": True, "returnByValue": True}
        answer = self._command("Runtime.evaluate", asked)
        if "exceptionDetails" in answer:
            # A page that is just being replaced has nothing to say.
            described = answer["exceptionDetails"].get("exception", {}).get("description", answer)
            raise AssertionError((expression, described))
        return answer["result"].get("value")

    def define(self, script: str) -> None:
        """Run a script for what it leaves behind; the policy of the page does not apply to it."""
        self._command("Runtime.evaluate", {"expression": f"{script};0"})

    def await_js(self, expression: str) -> Any:
        return eventually(lambda: self.js(expression))

    def element(self, testid: str) -> str:
        selector = f'[data-testid="{testid}"]'
        return f"document.querySelector({json.dumps(selector)})"

    def text(self, testid: str) -> str:
        return str(self.js(f"{self.element(testid)}?.innerText ?? ''"))

    def await_text(self, testid: str, wanted: str | Callable[[str], bool]) -> str:
        fits = wanted if callable(wanted) else lambda text: wanted in text
        return eventually(lambda: shown if fits(shown := self.text(testid)) else "")

    def click(self, testid: str) -> None:
        self.await_js(f"{self.element(testid)} && !{self.element(testid)}.disabled")
        self.js(f"{self.element(testid)}.click()")

    def fill(self, testid: str, text: str) -> None:
        """Replace what is in a field, as the keyboard does it."""
        self.await_js(f"Boolean({self.element(testid)})")
        self.js(f"({self.element(testid)}.focus(), {self.element(testid)}.select())")
        self._command("Input.insertText", {"text": text}) if text else self.press("Backspace")

    def choose(self, testid: str, value: str) -> None:
        chosen = f"{self.element(testid)}.value = {json.dumps(value)}"
        self.js(f"({chosen}, {self.element(testid)}.dispatchEvent(new Event('change', {{bubbles: true}})))")

    def press(self, key: str, modifiers: int = 0) -> None:
        """A key, to whatever has the focus."""
        common = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": KEY_CODES.get(key, ord(key[0].upper()))}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not modifiers else "")
        self._command("Input.dispatchKeyEvent", {**common, "type": "keyDown", "text": text})
        self._command("Input.dispatchKeyEvent", {**common, "type": "keyUp"})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        self._command("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", {"features": features})

    def take_complaints(self) -> list[Any]:
        """What the console shows as wrong since the last time, and every address elsewhere that was loaded."""
        self.js("1")
        own = [event for event in self._browser.events if event.get("sessionId") == self._session]
        self._browser.events.clear()
        found: list[Any] = []
        for event in own:
            params = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(params["args"])
            elif event["method"] == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith((self.origin, "data:", "blob:")):
                    found.append(url)
        return found

    def close(self) -> None:
        self._browser.give_back(self._session)

    def _command(self, method: str, params: Json | None = None) -> Json:
        return self._browser.command(method, params, session=self._session)
