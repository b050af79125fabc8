"""The ways to serve a call, as one table: feature tests of calls that use these fixtures run in each of them.

A snippet of shell or Python is a tool in each way. In a process that stays, a loop runs it once for each call. The loop
translates what a process of its own has into lines: variables, the files for errors and for resources, and output. If
the snippet fails, the process ends in the same way, as a script would that knows nothing of staying.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import ProjectBuilder
from tests.support.wire import LATEST_HANDSHAKE, MODERN, Json

# What the description of a Python tool says for it.
WAYS: dict[str, Json] = {
    "fresh": {"warm": False},
    "forked": {"warm": True},
    "resident": {"stays": {"for": "server", "workers": 4}},
}
SHELL = {
    "fresh": "#!/bin/bash\n{comments}{script}",
    # Python that is forked becomes bash.
    "forked": f"#!{sys.executable}\n{{comments}}import os\n"
    "os.environ.pop('LC_CTYPE', '')  # of Python\n"
    "os.execv('/bin/bash', ['bash', '-c', {script!r}, os.environ['MCP_TOOL_PATH']])\n",
    "resident": r"""#!/bin/bash
{comments}
source "${{MCP_SDK:?}}/tool-sdk.sh"
source() {{ # a snippet that loads the SDK has it already
  if [[ $1 == */tool-sdk.sh ]]; then set -euo pipefail; else builtin source "$@"; fi
}}
of_call='.meta | .client + {{
  MCP_TOOL_META_JSON: (._meta | tojson),
  MCP_ROOTS_JSON: (.roots | tojson),
  MCP_ROOTS_COUNT: (.roots | length | tostring),
  MCP_ROOTS_PATHS: ([.roots[].path] | join("\n"))
}} | to_entries[] | "export \(.key)=\(.value | @sh)"'
named='fromjson? // (split("\n") | map(select(. != "") | split("\t")
  | {{path: .[0], mimeType: .[1], uri: .[2]}} | with_entries(select(.value))))'
printed=$PWD/.printed.$$
export MCP_TOOL_ERROR_FILE=$PWD/.error.$$ MCP_TOOL_RESOURCES_FILE=$PWD/.resources.$$
while mcp_next_call; do
  export MCP_TOOL_NAME
  export -n MCP_TOOL_ARGS_JSON
  ((${{#MCP_TOOL_ARGS_JSON}} > 100000)) || export MCP_TOOL_ARGS_JSON # longer ones fit into no environment
  eval "$(jq -r "$of_call" <<<"$__MCP_CALL_LINE")"
  set +euo pipefail # as without the SDK
  (
{script}
  ) </dev/null >"$printed"
  status=$?
  ((status == 0)) || exit "$status"
  if [[ -e $MCP_TOOL_ERROR_FILE ]]; then
    answer=$(jq -Rsc "{{error: (fromjson? // .), call: $__MCP_CALL}}" "$MCP_TOOL_ERROR_FILE")
  elif [[ -s $MCP_TOOL_RESOURCES_FILE ]]; then
    answer=$(jq -Rsc --rawfile files "$MCP_TOOL_RESOURCES_FILE" \
      "{{result: ., call: $__MCP_CALL, resources: (\$files | $named)}}" "$printed")
  else
    answer=$(jq -Rsc "{{result: ., call: $__MCP_CALL}}" "$printed")
  fi
  rm -f "$printed" "$MCP_TOOL_ERROR_FILE" "$MCP_TOOL_RESOURCES_FILE"
  printf '%s\n' "$answer" >&"$MCP_ANSWERS_FD"
  __MCP_CALL=""
done
""",
}
PYTHON = {
    "fresh": f"#!{sys.executable} -S\n{{script}}",
    "forked": f"#!{sys.executable}\n{{script}}",
    "resident": f"""#!{sys.executable} -S
import contextlib, io, json, os, sys
calls, answers = open(int(os.environ["MCP_CALLS_FD"])), open(int(os.environ["MCP_ANSWERS_FD"]), "w")
print('{{{{"ready": true}}}}', file=answers, flush=True)
for line in calls:
    call = json.loads(line)
    if "arguments" in call:
        os.environ["MCP_TOOL_ARGS_JSON"] = json.dumps(call["arguments"])
        os.environ["MCP_INPUT_RESPONSES_JSON"] = json.dumps(call["meta"].get("inputResponses") or {{{{}}}})
        os.environ["MCP_REQUEST_STATE"] = call["meta"].get("requestState") or ""
        names = {{{{"__name__": "__main__", "call": call["call"], "calls": calls}}}}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile({{script!r}}, __file__, "exec"), names)
        print(json.dumps({{{{"result": printed.getvalue(), "call": call["call"]}}}}), file=answers, flush=True)
""",
}
# The Python SDK takes a process that stays for a function.
WITH_SDK = f"#!{sys.executable}\nimport mcp_tool\n@mcp_tool.tool\ndef {{name}}():\n    exec({{script!r}}, {{{{}}}})\n"

# What belongs to the process if it stays, as docs/resident-tools.md says: tests of this are for a process per call.
OF_PROCESS = {
    "exit status": "the calls of a process that ends fail, whatever it has printed, and the status says no more",
    "output": "what the process and its programs print is its log, which has no limit; only an answer is a result",
    "variables": "what a call has in variables is in its line, in another form",
    "files": "a call has no files, so nothing can be wrong with them",
    "start": "the process is started before the call, and loads what it needs once",
    "signals": "the process is told by a line that a call is to end",
}
per_call = pytest.mark.per_call
cheapest = pytest.mark.cheapest


class WayProject(ProjectBuilder):
    """A project whose tools are all served in one way."""

    def __init__(self, root: Path, way: str) -> None:
        super().__init__(root)
        self.way = way

    def tool(self, name: str, script: str, *, meta: Json | None = None, **fields: Any) -> Path:
        own = WAYS[self.way]
        first, _, body = script.partition("\n")
        if first.startswith(f"#!{sys.executable}") and not re.search(r"@mcp_tool|mcp_tool\.run\(", body):
            served = WITH_SDK if "import mcp_tool" in body and self.way == "resident" else PYTHON[self.way]
            script = served.format(name=name, script=body if self.way != "resident" else f"\n{body}")
        if script.startswith("#!"):
            return super().tool(name, script, meta={**own, **(meta or {})}, **fields)
        own = own if self.way == "resident" else {}
        comments = "".join(takewhile(lambda line: line.startswith("#"), script.splitlines(keepends=True)))
        if comments and not (meta or fields):  # they are the description, in shell
            served = SHELL["resident" if own else "fresh"]
            comments = f"# mcp: {json.dumps(own)}\n{comments}" if own else comments
            return super().tool(name, served.format(comments=comments, script=script))
        served = SHELL[self.way].format(comments="", script=script)
        return super().tool(name, served, meta={**own, **(meta or {})}, **fields)


def failure(way: str, exit_code: int, reason: str = "") -> str:
    """What a client reads of a snippet that failed."""
    killed = f"killed by {signal.Signals(exit_code - 128).name}" if exit_code > 128 else ""
    if way == "resident":
        end = f"The process was {killed}" if killed else f"The process ended with exit code {exit_code}"
        return f"{end}: {reason}" if reason else f"{end}."
    end = f"{killed} (exit code {exit_code})" if killed else f"exit code {exit_code}"
    return f"Tool failed: {reason or end}"


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def shared_project(way: str, tmp_path_factory: pytest.TempPathFactory) -> ProjectBuilder:
    return WayProject(tmp_path_factory.mktemp("shared") / "project", way)


@pytest.fixture
def project(way: str, tmp_path: Path) -> ProjectBuilder:
    return WayProject(tmp_path / "project", way)


def choose(items: list[pytest.Item]) -> list[pytest.Item]:
    """Leave out the cases that need not run. `per_call(REASON, NAME=VALUES)` has no resident case with these arguments.
    Other ways than the fresh start are tried with one revision, a resident process with two, because a result is
    converted after the call, and with `cheapest(NAME=VALUES)` only with these arguments. `cheapest(way=["resident"])`
    is for slow tests: a forked process is watched and stopped in the same way as a fresh one."""
    return [item for item in items if _is_chosen(item, getattr(item, "callspec", None))]


def _is_chosen(item: pytest.Item, callspec: Any) -> bool:
    if callspec is None or (way := callspec.params.get("way")) in (None, "fresh"):
        return True
    for mark in item.iter_markers("per_call"):
        assert mark.args[0] in OF_PROCESS
        if way == "resident" and all(callspec.params[name] in values for name, values in mark.kwargs.items()):
            return False
    chosen: Json = {"revision": (LATEST_HANDSHAKE, MODERN) if way == "resident" else (MODERN,)}
    for mark in item.iter_markers("cheapest"):
        chosen |= mark.kwargs
    return all(callspec.params.get(name, values[0]) in values for name, values in chosen.items())
