"""What every call of a tool needs to know of it: its place, its schemas, its time. Put together once per snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpgreen.catalog.snapshot import Snapshot
from mcpgreen.catalog.tools import Tool
from mcpgreen.errors import InternalError
from mcpgreen.features.call import Call
from mcpgreen.features.scripts import allowed_secs
from mcpgreen.features.services import Services
from mcpgreen.protocol.schemas.validator import BadSchema
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.scripts.environment import Environment
from mcpgreen.running.scripts.launch import Limits, Script
from mcpgreen.running.scripts.results import Expectation
from mcpgreen.running.scripts.shebang import may_use_shell_sdk
from mcpgreen.running.validation.schema_checks import Schema
from mcpgreen.text import jsontext


def terms_of(services: Services, snapshot: Snapshot, tool: Tool) -> ToolTerms:
    key = ("terms", tool.name)
    terms: ToolTerms | None = snapshot.cache.get(key)
    if terms is None:
        terms = snapshot.cache[key] = ToolTerms(services, tool)
    return terms


class ToolTerms:
    """The terms on which a tool is called."""

    def __init__(self, services: Services, tool: Tool) -> None:
        settings = services.settings
        described = tool.description
        extends = described.progress_extends_timeout
        self._tool = tool
        self._checks = services.schema_checks
        self._schemas: dict[str, Schema] = {}
        is_strict = described.strict_arguments
        self._is_lenient = not (settings.strict_arguments if is_strict is None else is_strict)
        self._extends = settings.progress_extends_timeout if extends is None else extends
        self._cap_secs = described.max_timeout_secs or settings.max_timeout_secs
        self.limits = Limits.of(settings)
        self._expected = Expectation(
            stdout_limit_bytes=self.limits.stdout_bytes,
            stderr_limit_bytes=self.limits.stderr_bytes,
            stderr_tail_bytes=settings.tool_stderr_tail_limit if settings.tool_stderr_capture else 0,
            timeout_secs=described.timeout_secs or settings.default_tool_timeout,
            timeout_hint=described.timeout_hint,
            max_timeout_secs=self._cap_secs,
            response_limit_bytes=settings.max_response_bytes,
            output_problems=self._output_problems if "outputSchema" in tool.definition else None,
        )
        ground = services.project.ground(services.project.tools_dir)
        self.script = Script(
            f"Tool '{tool.name}'",
            tool.path,
            tool.command,
            ground,
            warm=_modules(described.warm),
            wants_table=may_use_shell_sdk(tool.path),
        )
        self.entry_json = jsontext.dumps(tool.registry_entry)
        self._base = services.environment
        self._variables = _variables(tool)
        self._environment: tuple[Mapping[str, str], Mapping[str, str], Environment] = ({}, {}, {})

    def checked_arguments(self, arguments: dict[str, Any], encoded: bytes) -> tuple[list[str], bytes]:
        """What is wrong with the arguments, which are also given as JSON, by the tool's inputSchema; and the JSON for
        its script. May wait."""
        return self._judged("inputSchema", "argument", arguments, encoded, is_lenient=self._is_lenient)

    def time_and_expectation(self, call: Call) -> tuple[Deadline, Expectation]:
        """How long a call that begins now may take and what is expected of its output."""
        expected = self._expected
        if "timeoutSecs" in call.params:
            expected = expected._replace(timeout_secs=allowed_secs(call, expected.timeout_secs, self._cap_secs))
        return Deadline(expected.timeout_secs, extends=self._extends, cap_secs=self._cap_secs), expected

    def environment(self, about_the_roots: Mapping[str, str], about_the_client: Mapping[str, str]) -> Environment:
        """What the tool's script sees in every call of a client. Raises Denied if it may not see what it should."""
        roots, client, env = self._environment
        if about_the_roots is not roots or about_the_client is not client:
            env = self._base.with_more(self._variables, about_the_roots, about_the_client)
            self._environment = about_the_roots, about_the_client, env
        return env

    def _output_problems(self, value: Any) -> list[str]:
        return self._judged("outputSchema", "property", value, jsontext.dumps(value), is_lenient=False)[0]

    def _judged(
        self, which: str, noun: str, value: Any, encoded: bytes, *, is_lenient: bool
    ) -> tuple[list[str], bytes]:
        try:
            schema = self._schemas.get(which)
            if schema is None:
                schema = self._schemas[which] = Schema(self._tool.definition[which], noun=noun)
            return self._checks.judged(schema, value, encoded, is_lenient=is_lenient)
        except BadSchema as error:
            raise InternalError(f"Tool '{self._tool.name}' has an unusable {which}: {error}") from error


def _modules(warm: bool | list[str]) -> tuple[str, ...] | None:
    """What is loaded ahead for its script, if that is Python; None if each call is to be a fresh start."""
    if isinstance(warm, bool):
        return () if warm else None
    return tuple(warm)


def _variables(tool: Tool) -> dict[str, str]:
    """What every run of this tool sees."""
    variables = {"MCP_TOOL_NAME": tool.name, "MCP_TOOL_PATH": tool.path}
    described = tool.description
    if described.progress_extends_timeout is not None:
        variables["MCPBASH_PROGRESS_EXTENDS_TIMEOUT"] = "true" if described.progress_extends_timeout else "false"
    if described.max_timeout_secs:
        variables["MCPBASH_MAX_TIMEOUT_SECS"] = f"{described.max_timeout_secs:g}"
    if described.timeout_hint:
        variables["MCPBASH_TIMEOUT_HINT"] = described.timeout_hint
    return variables
