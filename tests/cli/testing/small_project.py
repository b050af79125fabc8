"""Three small tools with tests, and 20 regressions of them, each of which tests and a replay have to catch.

A regression is planted in a copy of a tool under a name of its own, so that one run tries them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.project import ProjectBuilder
from tests.support.wire import Wire

Json = dict[str, Any]

STATS = """# Count words
source "$MCP_SDK/tool-sdk.sh"
text=${MCP_TOOL_ARGS_JSON#*:\\"} text=${text%%\\"*}
if [ -z "$text" ]; then echo "the text is empty" >&2; exit 3; fi
mcp_progress 50 "half"
mcp_log info stats "counting"
set -- $text
echo "{\\"words\\": $#, \\"first\\": \\"$1\\", \\"hasMore\\": true}"
"""
FORM = '{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}'
CLEAN = f"""source "$MCP_SDK/tool-sdk.sh"
answer=$(mcp_elicit "Remove all?" '{FORM}') || true
case $answer in *true*) echo "removed 3 files";; *) echo "kept";; esac
"""
GREET = """echo "Hello, ${WHO:-world}!"
echo "Bye."
"""
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS: dict[str, tuple[str, Json]] = {
    "stats": (STATS, {"description": "Count words", "inputSchema": SCHEMA}),
    "clean": (CLEAN, {"description": "Remove all files"}),
    "greet": (GREET, {"description": "Greet", "env": ["WHO"]}),
}
TESTS = {
    "stats": """
  - name: counts
    arguments: {text: one two}
    expect:
      exitCode: 0
      json: {structuredContent.words: 2, structuredContent.first: one, structuredContent.hasMore: true}
      schema: {type: object, required: [words, first]}
      progress: 1
      withinSecs: 30
  - name: needs a text
    arguments: {text: ""}
    expect: {isError: true, exitCode: 3, text: {contains: the text is empty}}
  - name: needs an argument
    expect: {isError: true, text: {matches: "missing .* 'text'"}}
""",
    "clean": """
  - name: cleans
    answers: {Remove all: {action: accept, content: {sure: true}}}
    expect: {text: {matches: '^removed \\d+ files$'}}
  - name: keeps
    client: {revision: "2026-07-28"}
    answers: {sure: {action: decline}}
    expect: {text: kept}
""",
    "greet": """
  - name: greets
    expect: {text: [{contains: "Hello, Ada!"}], snapshot: true}
""",
}
SURE = {"sure": True}
META = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
SNAPSHOT = {"content": [{"type": "text", "text": "Hello, Ada!\nBye.\n"}], "isError": False}
Change = Callable[[str, Json], tuple[str, Json]]  # of a script and its description


def replaced(old: str, new: str) -> Change:
    def change(script: str, description: Json) -> tuple[str, Json]:
        assert old in script, script
        return script.replace(old, new), description

    return change


def described(**fields: object) -> Change:
    return lambda script, description: (script, {**description, **fields})


# What somebody breaks: the tool, and how. A change to nothing removes the tool.
REGRESSIONS: dict[str, tuple[str, Change]] = {
    "wrong-number": ("stats", replaced("$#", "$(($# + 1))")),
    "number-as-text": ("stats", replaced("$#, ", '\\"$#\\", ')),
    "truth-as-number": ("stats", replaced("true}", "1}")),
    "other-member": ("stats", replaced("words\\", "count\\")),
    "missing-member": ("stats", replaced(', \\"first\\": \\"$1\\"', "")),
    "text-around-json": ("stats", replaced('echo "{', 'echo "Result:"; echo "{')),
    "no-progress": ("stats", replaced('mcp_progress 50 "half"', ":")),
    "other-exit-code": ("stats", replaced("exit 3", "exit 4")),
    "failure-as-success": ("stats", replaced("exit 3", "exit 0")),
    "other-message": ("stats", replaced("the text is empty", "no text")),
    "failure": ("stats", replaced("set -- $text", "exit 1")),
    "optional-argument": ("stats", described(inputSchema={**SCHEMA, "required": []})),
    "gone": ("greet", lambda script, description: ("", description)),
    "mistake-in-syntax": ("greet", replaced("world}", "world")),
    "no-question": ("clean", replaced("$(mcp_elicit", "$(false")),
    "other-question": ("clean", replaced("Remove all?", "Really?")),
    "other-form": ("clean", replaced("sure", "certain")),
    "answer-ignored": ("clean", replaced("*true*) echo", "*never*) echo")),
    "variable-lost": ("greet", described(env=[])),
    "line-missing": ("greet", replaced('echo "Bye."\n', "")),
}


def tools_in_project() -> dict[str, str]:
    """The three tools, and a copy of one of them for each regression; by name, what it is a copy of."""
    return {name: name for name in TOOLS} | {name: tool for name, (tool, _) in REGRESSIONS.items()}


def correct_project(root: Path) -> ProjectBuilder:
    """All of them as they should be, with tests."""
    project = ProjectBuilder(root)
    for name, tool in tools_in_project().items():
        script, description = TOOLS[tool]
        project.tool(name, script, **description)
        project.write(f"tests/{name}.test.yaml", f"tool: {name}\nenvironment: {{WHO: Ada}}\ntests:{TESTS[tool]}")
        if tool == "greet":
            project.write(f"tests/snapshots/{name}/greets.json", json.dumps(SNAPSHOT))
    return project


def plant_regressions(project: ProjectBuilder) -> None:
    for name, (tool, change) in REGRESSIONS.items():
        script, description = change(*TOOLS[tool])
        project.tool(name, script, **description)
        if not script:
            project.remove(f"tools/{name}")


def record_session(project: ProjectBuilder, path: Path) -> None:
    """Record a client that does what the tests do, in both eras, with many calls at the same time."""
    with Wire(project.root, env={"MCPGREEN_RECORD": str(path), "WHO": "Ada"}) as wire:
        wire.handshake(capabilities={"elicitation": {}})
        names = tools_in_project()
        for name in (name for name, tool in names.items() if tool != "clean"):
            calls: list[Json] = [{"arguments": each} for each in ({"text": "one two"}, {"text": ""}, {})]
            for number, params in enumerate(calls if names[name] == "stats" else [{}]):
                id = f"{name} {number}"
                wire.start_request("tools/call", {"name": name, "_meta": {"progressToken": id}, **params}, id=id)
        for id in [id for id, method in wire.methods.items() if method == "tools/call"]:
            wire.response(id)
        for name in (name for name, tool in names.items() if tool == "clean"):
            request = wire.start_request("tools/call", {"name": name})
            question = wire.notice("elicitation/create")
            wire.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": SURE}})
            wire.response(request)
            asked = wire.modern("tools/call", {"name": name}, meta=META)["result"]
            answers = {"inputResponses": {key: {"action": "decline"} for key in asked["inputRequests"]}}
            wire.modern("tools/call", {"name": name, **answers, "requestState": asked["requestState"]}, meta=META)
        assert wire.stop() == 0
