"""One browser, one project and one page for all tests of the page: to start them takes longer than any test."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.browser import Browser
from tests.support.prerequisites import require_browser
from tests.support.project import ProjectBuilder
from tests.support.questions import ASK
from tests.workbench.dev_server import Dev
from tests.workbench.page.window import Window

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC"
BLOCKS = [
    {"type": "text", "text": "Here:"},
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
]
PROGRESS = {"method": "notifications/progress", "params": {"progressToken": "x", "progress": 1, "total": 4}}
LOG = {"method": "notifications/message", "params": {"level": "warning", "logger": "slow", "data": "<i>begun</i>"}}
SLOW = f"""
echo '{json.dumps(PROGRESS)}' >> $MCP_PROGRESS_STREAM
echo '{json.dumps(LOG)}' >> $MCP_LOG_STREAM
until [ -e "$MCPGREEN_PROJECT_ROOT/go" ]; do sleep 0.05; done
echo done
"""
KINDS = {
    "type": "object",
    "required": ["title", "shape"],
    "properties": {
        "title": {"type": "string", "maxLength": 20},
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "loud": {"type": "boolean"},
        "level": {"enum": ["low", "high"]},
        "since": {"type": "string", "format": "date"},
        "owner": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "address": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
        "shape": {
            "oneOf": [
                {
                    "title": "Circle",
                    "type": "object",
                    "properties": {"radius": {"type": "number"}},
                    "required": ["radius"],
                },
                {"title": "Box", "type": "object", "properties": {"width": {"type": "number"}}, "required": ["width"]},
            ]
        },
        "anything": {},
    },
}


# An MCP App that says what it could do by its height: 101 if it cannot reach the page, nor get the catalog, and has the
# result of its own call and of one that it makes itself.
APP = """<!doctype html><title>Board</title><script>
const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const attempts = [() => parent.document.title, () => parent.localStorage, () => document.cookie];
const isAlone = attempts.every((attempt) => { try { attempt(); return false; } catch { return true; } });
let result, answer;
addEventListener("message", async ({ data }) => {
  if (data.id === 1) send({ method: "ui/notifications/initialized" });
  if (data.method === "ui/notifications/tool-result") result = data.params;
  if (data.id === 2) answer = data.result;
  if (result && !answer) send({ id: 2, method: "tools/call", params: { name: "people", arguments: {} } });
  if (!result || !answer) return;
  const isShut = await fetch("/api/catalog").then(() => false, () => true);
  const isServed = JSON.stringify(result).includes("Ada") && JSON.stringify(answer).includes("Grace");
  send({ method: "ui/notifications/size-changed", params: { height: isAlone && isShut && isServed ? 99 : 199 } });
});
send({ id: 1, method: "ui/initialize", params: {} });
</script>"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    started = Browser(require_browser())
    yield started
    started.close()


@pytest.fixture(scope="session")
def page_project(tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    project = ProjectBuilder(tmp_path_factory.mktemp("page"))
    project.tool("echo", 'printf "%s" "$MCP_TOOL_ARGS_JSON"', description="Give it back", inputSchema=KINDS)
    people = json.dumps({"people": [{"name": "Ada", "born": 1815}, {"name": "Grace", "born": 1906}]})
    project.tool("people", f"echo '{people}'", description="People", outputSchema={"type": "object"})
    project.write("ui/board/index.html", APP)
    project.write("ui/board/ui.meta.json", "{}")
    shows = {"ui": {"resourceUri": "ui://test-project/board"}}
    project.tool("board", f"echo '{people}'", description="Show people", _meta=shows)
    project.tool("media", f"""echo '{json.dumps({"content": BLOCKS})}'""", description="Pictures and sound")
    project.tool("fails", r"printf '\033[31m<script>alert(1)</script>\n' >&2; exit 3", description="Fail")
    project.tool("silent", "true", description="Print nothing")
    flood = r"""awk 'BEGIN { for (i = 0; i < 200000; i++) print "\033[1m<b>line</b> " i }'"""
    project.tool("flood", flood, description="Print much")
    project.tool("slow", SLOW, description="Wait")
    asking = ASK + 'print(ask({"who": form("Who <b>?", name=TEXT)})["who"]["result"])'
    project.python_tool("asks", asking, description="Ask")
    model = [{"role": "user", "content": {"type": "text", "text": "Say <b>hi</b>"}}]
    wanted = {"method": "sampling/createMessage", "params": {"messages": model, "maxTokens": 9}}
    project.python_tool("samples", ASK + f"print(ask({{'m': {wanted}}})['m']['result']['content'])", description="Ask")
    there = {"mode": "url", "message": "Sign in", "url": "https://login.example/?x=1", "elicitationId": "e1"}
    visit = {"method": "elicitation/create", "params": there}
    project.python_tool("visits", ASK + f"print(ask({{'u': {visit}}})['u']['result'])", description="Visit")
    project.tool("later", "sleep 0.2; echo washed", description="Wash", task="always")
    project.write("tools/broken.meta.json", "{")
    project.tool("broken", "true")
    project.prompt("greet.md", "Hello {{name}}\n", description="Greet", arguments=[{"name": "name", "required": True}])
    project.resource("a.txt", "inside\n", description="A file")
    project.skill("welcome")
    return project


@pytest.fixture(scope="session")
def page_dev(page_project: ProjectBuilder) -> Iterator[Dev]:
    with Dev(page_project.root) as started:
        yield started


@pytest.fixture(scope="session")
def _window(browser: Browser, page_dev: Dev) -> Iterator[Window]:
    window = Window(browser, f"http://127.0.0.1:{page_dev.port}/?token={page_dev.token}")
    yield window
    window.close()


@pytest.fixture
def window(_window: Window) -> Iterator[Window]:
    """The page. Whatever a test does, the console stays clean, and nothing is loaded from elsewhere."""
    _window.take_complaints()
    yield _window
    assert _window.take_complaints() == []
