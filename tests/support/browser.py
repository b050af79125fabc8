"""Drive a headless Chromium over its DevTools protocol, and play the host of a page in it.

The protocol is spoken over a pair of pipes (descriptors 3 and 4 of the browser, JSON with a NUL after each message), so
nothing but the browser itself is needed. A page under test runs as a host would run it: in a frame of its own with an
opaque origin, under a policy that allows inline code and nothing else.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any

from tests.support.waiting import PATIENCE_SECS, eventually

Json = dict[str, Any]

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " "), "ArrowDown": (40, ""), "ArrowRight": (39, "")}

HOST_PAGE = """
<!doctype html><title>host</title><style>iframe { width: 900px; height: 700px }</style>
<iframe sandbox="allow-scripts"></iframe>
"""
HOST_SCRIPT = """
(html, context) => {
  const frame = document.querySelector("iframe");
  window.seen = [];
  window.answers = [];
  window.tell = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  window.addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    seen.push(data);
    if (data.method === "ui/initialize") {
      tell({ id: data.id, result: {
        protocolVersion: "2026-01-26",
        hostInfo: { name: "tests", version: "1" },
        hostCapabilities: { serverTools: {}, openLinks: {} },
        hostContext: context,
      } });
    } else if (data.method === "ui/open-link") {
      tell({ id: data.id, result: {} });
    } else if (data.method === "tools/call" && answers.length) {
      tell({ id: data.id, ...answers.shift() });
    }
  });
  frame.srcdoc = html;
}
"""


class Browser:
    """One browser process with a profile of its own, which goes with it."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="mcpgreen-browser-")
        to_browser, self._out = _pipe()
        self._in, from_browser = _pipe()
        options = [
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            # Else a sandboxed frame is another process, with a conversation of its own.
            "--disable-features=IsolateSandboxedIframes",
            f"--user-data-dir={self._profile}",
            "--remote-debugging-pipe",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]
        self._process = subprocess.Popen(
            # Python can pass descriptors on, but not under other numbers.
            ["bash", "-c", f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"', "bash", program, *options],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._unread = b""
        self._last_id = 0
        self._pages: list[str] = []  # that no view uses
        self.events: list[Json] = []
        self.version = self.command("Browser.getVersion")["product"]

    def command(self, method: str, params: Json | None = None, *, session: str | None = None) -> Json:
        self._last_id += 1
        message: Json = {"id": self._last_id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)

    def take_page(self) -> str:
        """The session of an empty page. One that was used is taken again: a new one would be a process of its own."""
        if self._pages:
            page = self._pages.pop()
            self.command("Runtime.disable", session=page)  # enabled again, it tells anew where scripts run
        else:
            target = self.command("Target.createTarget", {"url": "about:blank"})["targetId"]
            page = self.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable", session=page)
        return page

    def give_back(self, page: str) -> None:
        """Whatever was shown there ends."""
        self.command("Page.navigate", {"url": "about:blank"}, session=page)
        self._pages.append(page)
        self.events.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self.command("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE_SECS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _receive(self) -> Json:
        give_up_at = time.monotonic() + PATIENCE_SECS
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._in], [], [], max(0, give_up_at - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser has ended"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\0")
        return json.loads(line)


class View:
    """One page under test, in a frame, and the host around it."""

    def __init__(self, browser: Browser, html: str, *, context: Json | None = None) -> None:
        self._browser = browser
        self._session = browser.take_page()
        frame = self._command("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self._command("Page.setDocumentContent", {"frameId": frame, "html": HOST_PAGE})
        guarded = html.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1)
        assert guarded != html, "the page has no head"
        self._host = eventually(lambda: self._context_of(frame))
        self.in_host(f"({HOST_SCRIPT})({json.dumps(guarded)}, {json.dumps(context or {})})")
        eventually(lambda: self.seen("ui/notifications/initialized"))
        child = self._command("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]["id"]
        self._page = eventually(lambda: self._context_of(child))

    def in_host(self, expression: str) -> Any:
        return self._evaluate(expression, self._host)

    def in_page(self, expression: str) -> Any:
        """The value of an expression inside the frame."""
        return self._evaluate(expression, self._page)

    def text(self, selector: str) -> str:
        """The text that a user sees of the first element."""
        return self.in_page(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def texts(self, selector: str) -> list[str]:
        return self.in_page(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)")

    def click(self, selector: str) -> None:
        self.in_page(f"document.querySelector({json.dumps(selector)}).click()")

    def focus(self, selector: str) -> None:
        self.in_page(f"document.querySelector({json.dumps(selector)}).focus()")

    def press(self, key: str) -> None:
        """A key as the keyboard sends it, to whatever has the focus."""
        code, text = KEYS[key]
        common = {"key": key, "windowsVirtualKeyCode": code}
        self._command("Input.dispatchKeyEvent", {**common, "type": "keyDown", "text": text})
        self._command("Input.dispatchKeyEvent", {**common, "type": "keyUp"})

    def seen(self, method: str) -> list[Json]:
        """What the page has sent under this method: the parameters."""
        return self.in_host(f"seen.filter((each) => each.method === {json.dumps(method)}).map((each) => each.params)")

    def tell(self, message: Json) -> None:
        self.in_host(f"tell({json.dumps(message)})")

    def tool_result(self, data: Any = None, *, text: str = "", is_error: bool = False) -> None:
        result = {"content": [{"type": "text", "text": text}] if text else [], "isError": is_error}
        if data is not None:
            result["structuredContent"] = data
        self.tell({"method": "ui/notifications/tool-result", "params": result})

    def answer_next_call(self, answer: Json) -> None:
        """What the host says to the next `tools/call`: a member `result` or `error`."""
        self.in_host(f"answers.push({json.dumps(answer)})")

    def complaints(self) -> list[Any]:
        """What the console shows as wrong, and every address that was loaded."""
        self.in_page("1")  # whatever was said before this has been read now
        own = [event for event in self._browser.events if event.get("sessionId") == self._session]
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
                found.append(params["request"]["url"])
        return found

    def close(self) -> None:
        self._browser.give_back(self._session)

    def _command(self, method: str, params: Json | None = None) -> Json:
        return self._browser.command(method, params, session=self._session)

    def _context_of(self, frame: str) -> int | None:
        """Where the scripts of a frame run, as far as the browser has told: the latest, if it was loaded twice."""
        self._command("Runtime.evaluate", {"expression": "1"})
        for event in reversed(self._browser.events):
            if event["method"] == "Runtime.executionContextCreated" and event["sessionId"] == self._session:
                context = event["params"]["context"]
                if context["auxData"]["frameId"] == frame:
                    return context["id"]
        return None

    def _evaluate(self, expression: str, context: int) -> Any:
        asked = {"expression": expression, "contextId": context, "returnByValue": True}
        answer = self._command("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, (expression, answer)
        return answer["result"].get("value")


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are far from those that the browser wants to have."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 64) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
