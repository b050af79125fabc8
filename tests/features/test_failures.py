"""Scripts that fail, and how the client hears of it."""

from __future__ import annotations

import re

import pytest

from tests.support import ways
from tests.support.client import ALL_REVISIONS, Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import MODERN, Json, Wire, text_of

way, project, shared_project = ways.way, ways.project, ways.shared_project


@pytest.fixture(scope="module", autouse=True)
def _tools(shared_project: ProjectBuilder) -> None:
    scripts = {
        "silent": "exit 3",
        "complains": "echo 'first reason' >&2; echo 'second' >&2; exit 4",
        "warned": "echo 'mcp_elicit: Nobody answered' >&2; echo >&2; echo 'disk full' >&2; exit 3",
        "misused": "echo 'mcp_elicit: Nobody answered' >&2; echo 'mcp_json_obj: expected pairs' >&2; exit 1",
        "traced": "echo careful >&2; exec python3 -c 'raise ValueError(5)'",
        "partial": "echo 'so far'; echo 'disk full' >&2; exit 5",
        "printed": "exec 2>&1; echo '/usr/lib/x: password=hunter2'; [ $MCP_TOOL_ARGS_JSON = '{}' ] || exit 0\n"
        "for n in $(seq 2000); do echo line $n of many; done; echo 'gone: /usr/lib/y' >&2; exit 1",
        "killed": "kill -KILL $$",
        "ready": """echo '{"content":[{"type":"text","text":"my own words"}],"isError":false}'; exit 6""",
        "file": """echo '{"code":-32007,"message":"mine","data":{"a":1}}' > "$MCP_TOOL_ERROR_FILE"; echo out""",
        "file-reserved": """echo '{"code":-32002,"message":"mine"}' > "$MCP_TOOL_ERROR_FILE" """,
        "file-words": """echo 'just words' > "$MCP_TOOL_ERROR_FILE"; exit 1""",
        "file-infinite": """echo '{"code":5,"message":"x","data":1e999}' > "$MCP_TOOL_ERROR_FILE" """,
        "file-huge": """echo '{"code":99999999999,"message":"x"}' > "$MCP_TOOL_ERROR_FILE" """,
        "stdout": """echo '{"code":-32011,"message":"chosen","data":[1]}'; exit 1""",
        "stdout-fine": """echo '{"code":-32011,"message":"no failure"}'""",
        "stdout-almost": """echo '{"code":"x","message":"no integer"}'; exit 1""",
    }
    for name, script in scripts.items():
        shared_project.tool(name, script)


@pytest.mark.requirement("G-exit-status")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("name", "reason", "exit_code"),
    [
        ("silent", "", 3),
        ("complains", "first reason\nsecond", 4),
        ("warned", "disk full", 3),
        ("misused", "mcp_json_obj: expected pairs", 1),
        ("traced", "ValueError: 5", 1),
        ("killed", "", 137),
    ],
)
def test_a_failed_script_is_an_error_result_with_its_reason(
    shared_speak: Speak, way: str, revision: str, name: str, reason: str, exit_code: int
) -> None:
    """The reason is what the script said last. What the SDK says of its functions hid it, and a warning before it hid
    the end of a traceback."""
    result = shared_speak(revision).call_tool(name)

    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": ways.failure(way, exit_code, reason)}]
    assert result["_meta"]["exitCode"] == exit_code


@ways.per_call("exit status")
@pytest.mark.requirement("G-exit-status")
def test_what_a_failed_script_printed_is_kept(shared_speak: Speak) -> None:
    result = shared_speak().call_tool("partial")

    assert [block["text"] for block in result["content"]] == ["Tool failed: disk full", "so far\n"]
    assert result["_meta"]["stderr"] == "disk full\n"


@ways.per_call("exit status")
@pytest.mark.requirement("G-exit-status")
def test_a_ready_made_result_of_a_failed_script_is_kept_as_an_error(shared_speak: Speak) -> None:
    result = shared_speak().call_tool("ready")

    assert (result["isError"], text_of(result), result["_meta"]["exitCode"]) == (True, "my own words", 6)


@ways.per_call("exit status")
@pytest.mark.requirement("G-diagnostics")
def test_what_a_failed_script_printed_is_cleaned_like_its_stderr(shared_speak: Speak) -> None:
    """With `exec 2>&1` a model read what it does not read of stderr."""
    lines = [block["text"].splitlines() for block in shared_speak().call_tool("printed")["content"]]
    assert [lines[0], lines[1][0], lines[1][-1]] == [["Tool failed: exit code 1"], "x: password=[redacted]", "gone: y"]
    assert len(lines[1]) == 2002

    assert text_of(shared_speak().call_tool("printed", {"works": True})) == "/usr/lib/x: password=hunter2\n"


LEAKS = """\
echo "cannot read $PWD/data/x.csv for $HOME/.netrc, key abc-defghi-jkl and password=hunter2" >&2
echo "bash: /usr/lib/helper/run.sh: gone, see $MCP_SDK/tool-sdk.sh" >&2
"""
WRAPPED = f"import mcp_tool\nmcp_tool.CommandLine('sh', '-c', {LEAKS + 'exit 7'!r}).run()\n"
CLEAN = "cannot read data/x.csv for ~/.netrc, key [redacted] and password=[redacted]\n"
CLEAN += "bash: run.sh: gone, see tool-sdk.sh"


@pytest.mark.requirement("G-diagnostics")
@ways.cheapest(meta=["failures"])
@pytest.mark.parametrize("meta", ["failures", "never"])
def test_a_model_reads_no_paths_of_the_machine_and_no_secrets(
    project: ProjectBuilder, speak: Speak, tmp_path_factory: pytest.TempPathFactory, way: str, meta: str
) -> None:
    """Many clients hand `_meta` and the text of a failure to the model, and so to its vendor."""
    home = str(tmp_path_factory.mktemp("home"))
    project.tool("failing", f"{LEAKS}exit 1")
    project.tool("slow", f"{LEAKS}sleep 60", timeoutSecs=0.3)
    project.tool("told", f"""{LEAKS}echo '{{"content":[],"isError":true}}'""")
    project.tool("repeats", 'exec "$MCPGREEN_PYTHON" "$PWD/wrapped.py"')
    project.write("wrapped.py", WRAPPED)
    project.tool("odd", f"{LEAKS}echo nothing", outputSchema={"type": "object"})
    project.write("prompts/letter.sh", f"#!/bin/sh\n{LEAKS}exit 1").chmod(0o755)
    project.write("prompts/letter.meta.json", '{"name": "letter", "description": "A letter"}')
    project.write("providers/odd.sh", f"#!/bin/sh\n{LEAKS}exit 4").chmod(0o755)
    client = speak(result_meta=meta, env={"HOME": home, "API_TOKEN": "abc-defghi-jkl"})

    results = {name: client.call_tool(name) for name in ("failing", "slow", "told", "odd", "repeats")}
    assert text_of(results["failing"]) == ways.failure(way, 1, CLEAN)
    own_words = f"sh failed with exit status 7.\n{CLEAN}"  # printed by a script that fails
    assert text_of(results["repeats"]) == (ways.failure(way, 7, CLEAN) if way == "resident" else own_words)
    for result in results.values():
        assert result["isError"]
        assert result.get("_meta", {}).get("stderr") == (f"{CLEAN}\n" if meta == "failures" else None)
    assert client.error("prompts/get", {"name": "letter"})["message"] == f"Prompt 'letter' failed: {CLEAN}"
    assert client.error("resources/read", {"uri": "odd://x"})["message"] == CLEAN


LEAKING_OUTPUTS = {
    "one long line": ("print('x' * 32747, LEAK * 1000)", 1),
    "a longer line": ("print(LEAK * 9000, 'end', sep='\\n')", 1),
    "many lines": ("print((LEAK + '\\n') * 9000)", 1),
    "a key": ("print('log line\\n' * 1780 + '-----BEGIN RSA PRIVATE KEY-----\\n' + 'hunter2\\n' * 90)", 1),
    "a result": ("print(json.dumps({'content': [{'type': 'text', 'text': LEAK * 9000}]}))", 3),
    "not the declared output": ("print(LEAK, '\\n{}')", 0),
    "a wrong value": ("print(json.dumps({'a': LEAK}))", 0),
}


@pytest.mark.requirement("G-diagnostics")
@ways.cheapest(case=["one long line", "a wrong value"])
@pytest.mark.parametrize("case", LEAKING_OUTPUTS)
def test_a_model_reads_none_either_in_what_a_failed_script_printed(
    project: ProjectBuilder, speak: Speak, case: str
) -> None:
    """Long output, a key across the end of a piece, and output that does not match its schema were sent unchanged."""
    statement, status = LEAKING_OUTPUTS[case]
    leak = "LEAK = '/usr/lib/deep/x password=hunter2 abc-defghi-jkl '"
    script = f"import json, sys\n{leak}\n{statement}\nsys.exit({status})\n"
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "required": ["a"]}
    project.python_tool("f.py", script, **({} if status else {"outputSchema": schema}))
    result = speak(env={"API_TOKEN": "abc-defghi-jkl"}).call_tool("f")

    assert result["isError"]
    for leak in ("/usr/lib", "hunter2", "abc-defghi-jkl"):
        assert leak not in str(result["content"])


@ways.per_call("exit status")
@pytest.mark.requirement("G-diagnostics")
def test_what_a_wrapped_command_printed_is_cleaned(project: ProjectBuilder, speak: Speak) -> None:
    command = "'sh', '-c', 'echo /usr/lib/x pwd=hunter2; exit 3'"
    project.write("wrapped.py", f"import mcp_tool\nmcp_tool.CommandLine({command}).run()")
    project.tool("wrapped", 'exec "$MCPGREEN_PYTHON" "$PWD/wrapped.py"')

    said = [block["text"] for block in speak().call_tool("wrapped")["content"]]
    assert said == ["sh failed with exit status 3.", "x pwd=[redacted]\n"]


@pytest.mark.requirement("G-diagnostics")
def test_what_a_script_says_itself_about_a_failure_is_kept(project: ProjectBuilder, client: Wire) -> None:
    project.tool("says", """echo '{"content":[{"type":"text","text":"No folder /usr/lib/x"}],"isError":true}'""")

    assert text_of(client.call_tool("says")) == "No folder /usr/lib/x"


@pytest.mark.requirement("G-diagnostics")
@ways.cheapest(name=["PWD"])
@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "PASSWORD_STORE_DIR"])
def test_a_directory_is_no_secret(project: ProjectBuilder, speak: Speak, way: str, name: str) -> None:
    """PWD sounds like a password. Models read `[redacted]/shop/data/none`."""
    project.tool("fails", 'echo "no $MCPGREEN_PROJECT_ROOT/data/none" >&2; exit 1')
    client = speak(env={name: str(project.root.parent)})

    assert text_of(client.call_tool("fails")) == ways.failure(way, 1, "no data/none")


@ways.per_call("start")
@pytest.mark.requirement("G-diagnostics")
def test_a_forked_traceback_has_only_frames_of_the_project(project: ProjectBuilder, speak: Speak) -> None:
    project.python_tool("f.py", "import json\ndef g():\n    json.loads('x')\ng()\n")
    client = speak(warm_python="true")
    for result in (client.call_tool("f"), client.call_tool("f")):
        assert text_of(result) == "Tool failed: json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
        lines = result["_meta"]["stderr"].splitlines()
        assert [line.split('"')[1] for line in lines if "File" in line][:2] == ["tools/f.py", "tools/f.py"]
        assert not re.search(r"[\s\"'](/|<frozen|mcpgreen)", result["_meta"]["stderr"])


@ways.per_call("exit status", name=["stdout"])
@pytest.mark.requirement("G-chosen-error")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("file", {"code": -32007, "message": "mine", "data": {"a": 1}}),
        ("stdout", {"code": -32011, "message": "chosen", "data": [1]}),
    ],
)
def test_a_script_may_choose_its_error(shared_speak: Speak, revision: str, name: str, error: Json) -> None:
    assert shared_speak(revision).error("tools/call", {"name": name}) == error


@ways.per_call("files", name=["file-words", "file-infinite"])
@pytest.mark.requirement("G-chosen-error")
@pytest.mark.parametrize(
    ("name", "words"), [("file-words", "just words"), ("file-infinite", '"data":1e999'), ("file-huge", "99999999999")]
)
def test_an_error_file_that_holds_no_error_is_told_as_data(shared_speak: Speak, name: str, words: str) -> None:
    error = shared_speak().error("tools/call", {"name": name})

    assert (error["code"], error["message"]) == (-32603, "Tool failed")
    assert words in error["data"]


@pytest.mark.requirement("P-011")
@pytest.mark.parametrize("revision", ALL_REVISIONS)
def test_a_script_cannot_use_a_code_that_the_stateless_era_reserves(shared_speak: Speak, revision: str) -> None:
    code = shared_speak(revision).error("tools/call", {"name": "file-reserved"})["code"]

    assert code == (-32603 if revision == MODERN else -32002)


@ways.per_call("output")
@pytest.mark.requirement("P-115", "G-output-limit")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "script", ["head -c 5000 /dev/zero >/dev/{}; echo", "exec yes >/dev/{}"], ids=["some", "endless"]
)
def test_output_over_the_limit_is_an_error(project: ProjectBuilder, speak: Speak, stream: str, script: str) -> None:
    project.tool("loud", script.format(stream))
    error = speak(max_tool_output_size=1000).error("tools/call", {"name": "loud"})

    assert error["code"] == -32603
    assert "exceeded 1000 bytes" in error["message"]


@pytest.mark.requirement("G-output-limit")
def test_output_up_to_the_limit_is_delivered(project: ProjectBuilder, speak: Speak, way: str) -> None:
    project.tool("full", "head -c 1000 /dev/zero | tr '\\0' x")
    limit = 1000 + len('{"result":"","call":1}') * (way == "resident")

    assert text_of(speak(max_tool_output_size=limit).call_tool("full")) == "x" * 1000


@pytest.mark.requirement("G-cannot-start")
def test_a_tool_that_cannot_be_started_is_an_internal_error(project: ProjectBuilder, client: Wire) -> None:
    project.tool("orphan", "#!/no/such/interpreter\n")
    error = client.error("tools/call", {"name": "orphan"})

    assert error["code"] == -32603
    assert str(project.root) not in error["message"]


@pytest.mark.requirement("G-cannot-start")
def test_an_executable_text_without_shebang_runs_by_the_shell(project: ProjectBuilder, client: Wire) -> None:
    path = project.write("tools/bare", '# mcp: {"description": "Without a first line"}\necho from a shell\n')
    path.chmod(0o755)

    assert text_of(client.call_tool("bare")) == "from a shell\n"


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"f.py": "x = 1\ny = (\n"}, "SyntaxError: '(' was never closed (f.py, line 3)"),
        ({"f.py": "if x:\npass\n"}, "IndentationError: expected an indented block after 'if' statement on line 2"),
        ({"f.py": "import helper\n", "helper.py": "\n\nx = = 1\n"}, "SyntaxError: invalid syntax (helper.py, line 3)"),
    ],
)
def test_a_syntax_error_is_told_with_its_place(
    project: ProjectBuilder, speak: Speak, way: str, files: dict[str, str], text: str
) -> None:
    """The model read no more than the name of the file, and could not say what was wrong with it."""
    for name, content in files.items():
        project.write(f"tools/{name}", content)
    project.python_tool("f.py", files["f.py"])

    said = text_of(speak().call_tool("f"))
    assert said.startswith(ways.failure(way, 1, text))
    assert said.endswith(")")
