"""The waterfall and the figures, with calls of the project itself and with very many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workbench.page.window import Window

MANY = 5000
TELL_MANY = f"""await (async () => {{
    const {{ state }} = await import('/state.js');
    const server = {{ kind: 'server', at: 0, pid: 1, started_at: 1, name: 'many', project: '/' }};
    const begun = Date.now() / 1000 - {MANY};
    let n = 0;
    state.calls.apply(server);
    for (let call = 1; call <= {MANY}; call += 1) {{
      const at = begun + call;
      const outcome = call % 10 ? 'ok' : 'failed';
      const about = {{ call, link: 1, method: 'tools/call', name: `tool-${{call % 7}}` }};
      state.calls.apply({{ ...about, n: ++n, at, kind: 'queued', id: call, place: 0 }});
      const spent = {{ queue_ms: 100, run_ms: 390, write_ms: 10, bytes: 7 }};
      state.calls.apply({{ ...about, ...spent, n: ++n, at: at + 0.5, kind: 'ended', outcome }});
    }}
    const hangs = {{ call: {MANY} + 1, link: 1, method: 'tools/call', name: 'hangs', id: 0, place: 0 }};
    state.calls.apply({{ ...hangs, n: ++n, at: begun, kind: 'queued' }});
    state.calls.markHung();
}})()"""


@pytest.fixture
def many(window: Window) -> Iterator[Window]:
    """The page, with calls of a server that does not exist."""
    window.go("calls")
    window.js("(await import('/state.js')).state.chooseServer('none-of-ours')")
    window.take_complaints()  # the server does not know it
    window.js(TELL_MANY)
    yield window
    window.js("(await import('/state.js')).state.chooseServer('own')")
    window.js("(await import('/state.js')).state.go({ filter: '', call: null })")
    window.await_text("live", "live")
    window.take_complaints()


def test_a_call_is_opened_to_its_process_its_output_and_its_frames(window: Window) -> None:
    window.go("try/tool/fails")
    window.click("run")
    window.await_text("status", "failed")
    window.click("to-call")
    shown = window.await_text("call-detail", "exit 3")
    assert "tools/fails" in window.text("argv") and "MCP_TOOL_NAME" in window.js(
        f"{window.element('variables')}.textContent"
    )
    assert "<script>" in window.text("stderr") and "queue" in shown
    assert window.js("location.search").startswith("?call=")

    window.click("try-call")
    assert "fails" in window.await_text("desk", "fails")
    window.click("to-call")
    window.open(window.js("location.href"))
    window.await_text("call-detail", "exit 3")
    window.press("Escape")
    window.await_js("!location.search")


def test_five_thousand_calls_are_a_screenful_of_elements_and_of_work(many: Window) -> None:
    many.await_text("filter-note", "5,001 calls")
    assert many.js("document.querySelectorAll('.call-row').length") < 60
    spent = many.js("""await (async () => {
        const rows = document.querySelector('[data-testid=calls]');
        const frame = () => new Promise(requestAnimationFrame);
        const begun = performance.now();
        for (let turn = 0; turn < 20; turn += 1) { rows.scrollTop += 5000; await frame(); }
        return (performance.now() - begun) / 20;
    })()""")
    assert spent < 1000  # a table of them all took many times that; the speed itself is no matter of a test

    many.fill("filter", "status:error tool:tool-3")
    many.await_text("filter-note", "72 of 5,001")
    many.fill("filter", "")
    many.click("hung")
    many.await_text("filter-note", "1 of 5,001")


def test_the_waterfall_is_walked_with_the_keyboard(many: Window) -> None:
    many.await_text("filter-note", "5,001 calls")
    many.js("document.activeElement.blur()")
    many.press("/")
    many.press("Enter")
    many.press("ArrowDown")
    many.press("ArrowDown")
    many.press("Enter")
    many.await_text("call-detail", "Call 4999")
    many.press("n")
    many.await_text("call-detail", "Call 4990")


def test_figures_are_by_tool(many: Window) -> None:
    many.js("location.hash = 'figures'")
    many.click("range-0")
    assert "500 ms" in many.await_text("by-tool", "tool-3")
    many.click("figures-tool-3")
    many.await_text("filter-note", "of 5,001")
