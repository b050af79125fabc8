"""Shell tools that trace their commands: `set -x` shows what the script does, and no value that our functions read."""

from __future__ import annotations

import json

import pytest

from .conftest import Bench
from .test_shell_asking import CAPABLE

SECRET = "hush-4711"
ARGUMENTS = {"token": SECRET, "flag": True, "number": 815815815, "path": f"/{SECRET}"}
# What they print is for the script: it goes nowhere here, as a trace of `x=$(...)` would be the script's own.
READS = [
    "mcp_args_raw",
    "mcp_args_get .token",
    "mcp_args_get .gone --default x",
    "mcp_args_require .token",
    "mcp_args_bool .flag",
    "mcp_args_int .number --min 1",
    "mcp_require_path .path",
    "mcp_meta_raw",
    "mcp_meta_get .client_secret",
    "mcp_auth_raw",
    "mcp_auth_get .phone",
    "mcp_config_get .password",
]


@pytest.fixture
def traced(each: Bench) -> Bench:
    each.env["MCP_TOOL_META_JSON"] = json.dumps({"client_secret": SECRET})
    each.env["MCP_AUTH_JSON"] = json.dumps({"phone": SECRET})
    each.env["MY_CONFIG"] = json.dumps({"password": SECRET})
    return each


@pytest.mark.parametrize("spills", [False, True], ids=["variable", "file"])
def test_the_trace_has_no_value_of_arguments_metadata_and_configuration(traced: Bench, spills: bool) -> None:
    env = {}
    if spills:
        (traced.directory / "args.json").write_text(json.dumps(ARGUMENTS), encoding="utf-8")
        env = {"MCP_TOOL_ARGS_JSON": "", "MCP_TOOL_ARGS_FILE": str(traced.directory / "args.json")}
    body = "set -x\nmcp_config_load --env MY_CONFIG\n" + "".join(f"{read} >>out\n" for read in READS) + "echo on"
    run = traced.shell(body, ARGUMENTS, **env)

    assert (run.exit_code, run.stdout) == (0, "on\n")
    assert SECRET not in run.stderr
    assert "815815815" not in run.stderr
    assert f"{SECRET}\n" in (traced.directory / "out").read_text(encoding="utf-8")
    assert [read for read in READS if f"+ {read}\n" not in run.stderr] == []
    assert "+ echo on\n" in run.stderr


@pytest.mark.parametrize("call", ["mcp_elicit_string Who", "mcp_sample '\"Hi\"' 5", 'mcp_ask "$REQUESTS"'])
def test_the_trace_has_no_answer(full: Bench, call: str) -> None:
    full.env.update(CAPABLE, MCP_ASK_REPLY=str(full.directory / "reply"))
    said = {"status": "answered", "result": {"action": "accept", "content": {"value": SECRET}}}
    full.answer = lambda message: json.dumps(dict.fromkeys(message["ask"], said))
    requests = json.dumps({"key": {"method": "roots/list"}})
    run = full.shell(f"set -x\n{call} >out\necho on", REQUESTS=requests)

    assert (run.exit_code, run.stdout) == (0, "on\n")
    assert SECRET in (full.directory / "out").read_text(encoding="utf-8")
    assert SECRET not in run.stderr
    assert "+ echo on\n" in run.stderr


@pytest.mark.parametrize("option", ["+x", "-x"], ids=["untraced", "traced"])
def test_a_trace_changes_no_status(full: Bench, option: str) -> None:
    """Also `set -e` counts as it did: a failed read ends the script, unless the script says otherwise."""
    body = "mcp_config_get .a || echo $?\nmcp_args_get '.[' || echo $?\nmcp_config_get .a\necho on"
    run = full.shell(f"set {option}\n{body}")
    assert (run.exit_code, run.stdout) == (1, "1\n3\n")


def test_an_argument_that_is_refused_ends_a_traced_script(full: Bench) -> None:
    run = full.shell("set -x\nmcp_args_int .number --max 5\necho on", ARGUMENTS)
    assert (run.exit_code, run.error["message"]) == (1, ".number must be <= 5")
    assert "815815815" not in run.stderr
