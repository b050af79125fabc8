"""Prompts, and what server.d/ registers: overrides, completions, templates, hooks."""

from __future__ import annotations

import pytest

from .conftest import ENVELOPE, HEAD, Json, OldTree, Serve

REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

PROGRESS = """
mcp_progress 30 "A third"
mcp_progress 100 "All"
mcp_result_success "$(mcp_json_obj message "Registered by hand")"
"""

# Pages by limit and offset, as scripts did that could not know how many values a client wants.
SUGGEST = """#!/usr/bin/env bash
set -euo pipefail
json_bin="${MCPBASH_JSON_TOOL_BIN:-}"
query="$("${json_bin}" -r '(.query // .prefix // "")' <<<"${MCP_COMPLETION_ARGS_JSON:-{\\}}")"
"${json_bin}" -n -c --arg query "${query}" --argjson limit "${MCP_COMPLETION_LIMIT:-5}" \\
  --argjson offset "${MCP_COMPLETION_OFFSET:-0}" '
  def fits($q): ($q | length) == 0 or (ascii_downcase | contains($q | ascii_downcase));
  [range(1; 8) | "step \\(.)"] + ["stop"] | map(select(fits($query))) as $all
  | $all[$offset:$offset + $limit] as $page
  | (($offset + ($page | length)) < ($all | length)) as $more
  | {suggestions: $page, hasMore: $more, next: (if $more then $offset + ($page | length) else null end)}'
"""

REGISTER = """#!/usr/bin/env bash
set -euo pipefail
mcp_completion_manual_begin
mcp_completion_register_manual '{"name":"demo.completion","path":"completions/suggest.sh","timeoutSecs":5}'
if [[ "${DEMO_ENABLE_ALT_COMPLETION:-false}" == "true" ]]; then
  mcp_completion_register_manual '{"name":"demo.completion.alt","path":"completions/alt.sh","timeoutSecs":5}'
fi
mcp_completion_manual_finalize
mcp_resources_templates_manual_begin
mcp_resources_templates_register_manual \\
  '{"name":"logs-by-date","uriTemplate":"file:///var/log/{service}/{date}.log","description":"Logs of a day"}'
mcp_resources_templates_manual_finalize
return 0
"""


def completed(value: str, name: str = "demo.completion", **params: object) -> Json:
    return {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "query", "value": value}, **params}


@pytest.fixture
def completing(tree: OldTree) -> OldTree:
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "What to complete"}}}
    tree.write("prompts/demo.completion.txt", "Say more about ${query}.\n")
    meta = {"name": "demo.completion", "path": "demo.completion.txt", "description": "A demo", "arguments": schema}
    tree.json("prompts/demo.completion.meta.json", meta)
    tree.program("completions/suggest.sh", SUGGEST)
    tree.program("completions/alt.sh", "#!/usr/bin/env bash\necho '[\"another way\"]'\n")
    return tree


@pytest.mark.parametrize("placeholder", ["${name}", "{{name}}"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_07_a_prompt_greets_by_name(tree: OldTree, serve: Serve, revision: str, placeholder: str) -> None:
    tree.write("prompts/greeting.txt", f"Greet {placeholder} kindly.\n")
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Whom"}},
        "required": ["name"],
    }
    meta = {"name": "prompt.greeting", "description": "A greeting", "path": "greeting.txt", "arguments": schema}
    tree.json("prompts/greeting.meta.json", meta)
    client = serve(revision)

    (listed,) = client.result("prompts/list")["prompts"]
    assert listed["name"] == "prompt.greeting"
    assert listed["arguments"] == [{"name": "name", "description": "Whom", "required": True}]
    got = client.get_prompt("prompt.greeting", {"name": 'Ada \\ "the\nfirst" {{name}}'})
    (message,) = got["messages"]
    assert message["role"] == "user"
    assert message["content"]["text"] == 'Greet Ada \\ "the\nfirst" {{name}} kindly.'


@pytest.mark.parametrize("revision", REVISIONS)
def test_09_what_is_registered_takes_the_place_of_what_is_found(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.program("tools/progress-demo.sh", HEAD + PROGRESS)
    tree.shell_tool("found", "mcp_emit_text found", name="found")
    tree.write("prompts/manual.prompt.txt", "Explain {{topic}} in two sentences.\n")
    tree.write("resources/other.txt", "not registered")
    topic = {"type": "object", "properties": {"topic": {"type": "string"}}}
    register = {
        "version": 1,
        "tools": [
            {
                "name": "manual.progress",
                "description": "Tells progress",
                "path": "progress-demo.sh",
                "timeoutSecs": 8,
                "inputSchema": {"type": "object", "properties": {}},
                "outputSchema": ENVELOPE,
            }
        ],
        "resources": [
            {
                "name": "echo.hello",
                "path": "placeholder.txt",
                "uri": "echo://Hello-by-hand",
                "mimeType": "text/plain",
                "provider": "echo",
            }
        ],
        "prompts": [{"name": "manual.prompt", "path": "manual.prompt.txt", "arguments": topic}],
    }
    tree.json("server.d/register.json", register)
    client = serve(revision)

    assert list(client.tools()) == ["manual.progress"]
    result = client.call_tool("manual.progress", meta={"progressToken": 1})
    assert result["structuredContent"]["result"] == {"message": "Registered by hand"}
    assert [each["params"]["progress"] for each in client.wire.notices("notifications/progress")] == [30, 100]
    assert [each["uri"] for each in client.result("resources/list")["resources"]] == ["echo://Hello-by-hand"]
    (content,) = client.result("resources/read", {"uri": "echo://Hello-by-hand"})["contents"]
    assert content["text"] == "Hello-by-hand"
    (message,) = client.get_prompt("manual.prompt", {"topic": "registries"})["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": "Explain registries in two sentences."}}


@pytest.mark.parametrize("revision", REVISIONS)
def test_10_completions_come_in_pages(completing: OldTree, serve: Serve, revision: str) -> None:
    completions = [{"name": "demo.completion", "path": "completions/suggest.sh", "timeoutSecs": 5}]
    completing.json("server.d/register.json", {"version": 1, "completions": completions})
    client = serve(revision)

    pages, cursor = [], {}
    while True:
        page = client.result("completion/complete", completed("ste", limit=3, **cursor))["completion"]
        pages.append(page["values"])
        if not page["hasMore"]:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert pages == [["step 1", "step 2", "step 3"], ["step 4", "step 5", "step 6"], ["step 7"]]
    assert "nextCursor" not in page
    (message,) = client.get_prompt("demo.completion", {"query": "step 3"})["messages"]
    assert message["content"]["text"] == "Say more about step 3."


@pytest.mark.parametrize("revision", REVISIONS)
def test_11_templates_of_both_origins_are_listed_and_the_registered_win(
    tree: OldTree, serve: Serve, revision: str
) -> None:
    found = {"name": "project-files", "uriTemplate": "file:///{path}", "title": "Found", "description": "on disk"}
    tree.json("resources/project-files.meta.json", found)
    tree.json("resources/repo-tree.meta.json", {"name": "repo-tree", "uriTemplate": "git+https://{+repo}#{path}"})
    registered = [
        {"name": "logs-by-date", "uriTemplate": "file:///var/log/{service}/{date}.log", "mimeType": "text/plain"},
        {"name": "project-files", "uriTemplate": "file:///{path}", "title": "Registered"},
    ]
    tree.json("server.d/register.json", {"version": 1, "resourceTemplates": registered})
    listed = serve(revision).result("resources/templates/list")["resourceTemplates"]

    assert [each["name"] for each in listed] == ["logs-by-date", "project-files", "repo-tree"]
    assert listed[1]["title"] == "Registered"


def test_11_an_address_that_fits_a_template_is_read_within_the_roots(tree: OldTree, serve: Serve) -> None:
    tree.json("resources/project-files.meta.json", {"name": "project-files", "uriTemplate": "file:///{path}"})
    note = tree.write("notes/today.txt", "note")
    client = serve()

    (content,) = client.result("resources/read", {"uri": note.as_uri()})["contents"]
    assert content["text"] == "note"
    refused = client.error("resources/read", {"uri": "file:///etc/passwd"})
    assert (refused["code"], refused["message"]) == (-32603, "Resource outside allowed roots")


@pytest.mark.parametrize("revision", REVISIONS)
def test_hooks_register_completions_and_templates(completing: OldTree, serve: Serve, revision: str) -> None:
    completing.program("server.d/register.sh", REGISTER)
    client = serve(revision, MCPBASH_ALLOW_PROJECT_HOOKS="true", DEMO_ENABLE_ALT_COMPLETION="true")

    first = client.result("completion/complete", completed("stop"))["completion"]
    assert (first["values"], first["hasMore"]) == (["stop"], False)
    alternative = client.result("completion/complete", completed("", "demo.completion.alt"))["completion"]
    assert alternative["values"] == ["another way"]
    (template,) = client.result("resources/templates/list")["resourceTemplates"]
    assert template["name"] == "logs-by-date"
    # Nothing of a kind is registered: it is found.
    assert [each["name"] for each in client.result("prompts/list")["prompts"]] == ["demo.completion"]


def test_hooks_that_nobody_allowed_are_not_run(completing: OldTree, serve: Serve) -> None:
    completing.program("server.d/register.sh", "touch ran\n" + REGISTER)

    assert serve().result("resources/templates/list")["resourceTemplates"] == []
    assert not (completing.root / "ran").exists()
