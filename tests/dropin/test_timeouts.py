"""Timeouts, and progress that extends them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wire import text_of

from .conftest import Json, OldTree, Serve

REVISIONS = ("2025-11-25", "2026-07-28")  # one of each era: what keeps a call alive is not the protocol's

# Each runs longer than it has, in steps that are shorter.
WITH_PROGRESS = """
for step in 1 2 3 4 5 6; do mcp_progress $((step * 10)) "Step ${step}"; sleep 0.4; done
mcp_result_success "$(mcp_json_obj message "survived")"
"""
WITH_EVENTS = """
work() {
  local step
  for step in 1 2 3 4 5 6; do printf '{"type":"step","step":%d}\\n' "${step}" >&2; sleep 0.4; done
  printf '{"steps":6}'
}
result="$(mcp_run_with_progress --pattern '^\\{.*"type"' --extract json --quiet -- \\
  bash -c "$(declare -f work); work")"
mcp_result_success "${result}"
"""
SILENT = "sleep 60\n"


def call(serve: Serve, name: str, revision: str = "2025-11-25", **env: str) -> Json:
    result: Any = serve(revision, **env).call_tool(name, meta={"progressToken": "t"})
    return dict(result)


@pytest.mark.parametrize("revision", REVISIONS)
def test_99_progress_keeps_a_call_alive(tree: OldTree, serve: Serve, revision: str) -> None:
    tree.shell_tool("slow-with-progress", WITH_PROGRESS, timeoutSecs=2, name="slow", progressExtendsTimeout=True)
    assert call(serve, "slow", revision)["structuredContent"]["result"] == {"message": "survived"}


def test_99_progress_keeps_every_call_alive_if_the_server_is_told_so(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("slow-with-progress", WITH_PROGRESS, timeoutSecs=2, name="slow")

    assert call(serve, "slow", MCPBASH_PROGRESS_EXTENDS_TIMEOUT="true")["isError"] is False
    assert call(serve, "slow")["structuredContent"]["error"]["reason"] == "fixed"


@pytest.mark.parametrize(("fields", "is_told"), [({}, True), ({"progressExtendsTimeout": True}, False)])
def test_99_progress_that_does_not_keep_a_call_alive_is_worth_a_warning(
    tree: OldTree, serve: Serve, fields: Json, is_told: bool
) -> None:
    tree.shell_tool("stuck", "mcp_progress 10 begun\n" + SILENT, timeoutSecs=1, name="stuck", **fields)
    client = serve()
    client.call_tool("stuck")

    said = [message["params"] for message in client.wire.notices("notifications/message")]
    assert [each["level"] for each in said] == ["warning"] * is_told
    assert ("progressExtendsTimeout" in str(said)) is is_told


def test_99_events_that_fit_the_pattern_keep_it_alive_as_well(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("slow-with-events", WITH_EVENTS, timeoutSecs=2, name="slow", progressExtendsTimeout=True)
    assert call(serve, "slow")["structuredContent"]["result"] == {"steps": 6}


def test_99_without_progress_the_call_is_idle(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("slow-no-progress", SILENT, timeoutSecs=1, name="slow", progressExtendsTimeout=True)
    result = call(serve, "slow")

    assert (result["isError"], text_of(result)) == (True, "Tool timed out after 1s (no progress reported)")
    error = result["structuredContent"]["error"]
    assert (error["type"], error["reason"], error["timeoutSecs"]) == ("timeout", "idle", 1)
    assert str(error["maxTimeoutSecs"]) == "600"


def test_99_progress_does_not_extend_beyond_the_maximum(tree: OldTree, serve: Serve) -> None:
    fields = {"timeoutSecs": 1, "maxTimeoutSecs": 1, "progressExtendsTimeout": True}
    tree.shell_tool("slow-with-progress", WITH_PROGRESS, name="slow", **fields)
    result = call(serve, "slow")

    assert text_of(result) == "Tool exceeded maximum runtime of 1s"
    assert result["structuredContent"]["error"]["reason"] == "max_exceeded"


def test_99_a_hint_tells_the_model_what_to_do(tree: OldTree, serve: Serve) -> None:
    tree.shell_tool("slow-with-hint", SILENT, timeoutSecs=1, timeoutHint="Use dryRun first", name="slow")
    result = call(serve, "slow")

    assert text_of(result) == "Tool timed out after 1s\n\nSuggestion: Use dryRun first"
    assert result["structuredContent"]["error"]["hint"] == "Use dryRun first"
