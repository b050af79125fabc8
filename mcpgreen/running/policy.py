"""Decide whether a tool may be called: first by the operator's allow-list, then by the project's `server.d/policy.sh`.

Everything may by default; an allow-list, when set, restricts. Whether a script can be trusted is another question,
asked of every one when it is run: see `launch`.

The hook runs again for each call, in the greenlet of that call: cancelling the call stops it. It sees all variables of
the server but its secrets, not the few that a tool gets.

Rule: no clear yes is a no, and a file that others could have written says nothing clear. Only a file that is not there,
or that defines no check, leaves the decision to the allow-list.
"""

from __future__ import annotations

import os

from mcpgreen import journal
from mcpgreen.errors import ERROR_CODES, Denied, ScriptError
from mcpgreen.running.hooks import Hook, HookEnd, HookShell, records_in
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.running.trust import Ground
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext

POLICY_SECS = 5.0
ANSWER_BYTES = 1 << 20
LONGEST_ARGUMENT_BYTES = 100_000  # Linux takes 128 KiB for one argument
DEFAULT_CODE = -32602
ALLOW_ALL = ("*", "all")


class ProjectPolicy:
    """The list of allowed tools and `policy.sh`. Without that hook, asking costs a look at the directory."""

    def __init__(self, ground: Ground, *, settings: Settings, shell: HookShell, state_dir: StateDir) -> None:
        """`ground` is server.d/."""
        self._allowlist: tuple[str, ...] = settings.tool_allowlist
        self._allow_default: str = settings.tool_allow_default
        self._path = os.path.join(ground.directory, "policy.sh")
        self._ground = ground
        self._shell = shell
        self._state_dir = state_dir
        self._told: str | None = None

    def require_allowed(self, name: str, entry_json: bytes, serial: int) -> bool:
        """Return whether anything had to be asked. Raises Denied, or the error that the hook chose. `serial` is the
        number of the call."""
        self._require_listed(name)
        if not os.access(self._path, os.F_OK, follow_symlinks=False):  # as `lexists`, without the exception
            return bool(self._allowlist)
        problem = self._ground.problem_with_hook(self._path)
        if problem:
            raise Denied(f"Tool '{name}' blocked by policy: policy.sh is not trusted: {problem}")
        end = self._ask(name, entry_json, serial)
        said = dict(records_in(end.answer))
        if not end.failure and said.get("verdict") in ("allowed", "none"):
            if said["verdict"] == "none":
                self._tell("policy.sh has no effect: it does not define mcp_tools_policy_check")
            return True
        if said.get("verdict") != "denied":
            journal.error("policy.sh could not decide about %s: %s\n%s", name, end.failure, end.stderr_tail)
        raise _refusal(name, said)

    def _require_listed(self, name: str) -> None:
        if not self._allowlist:
            if self._allow_default in ("allow", "all"):
                return
            raise Denied(f"Tool '{name}' blocked by policy. Set MCPGREEN_TOOL_ALLOWLIST in your MCP client config.")
        if name not in self._allowlist and not any(word in self._allowlist for word in ALLOW_ALL):
            raise Denied(f"Tool '{name}' blocked by policy (not in MCPGREEN_TOOL_ALLOWLIST)")

    def _ask(self, name: str, entry_json: bytes, serial: int) -> HookEnd:
        if len(entry_json) <= LONGEST_ARGUMENT_BYTES:
            return self._run(name, entry_json.decode("ascii"), serial)
        files = self._state_dir.new_call(serial)
        try:
            return self._run(name, "@" + os.fsdecode(files.spill(b"policy.json", entry_json)), serial)
        finally:
            files.remove()

    def _run(self, name: str, metadata: str, serial: int) -> HookEnd:
        return self._shell.run(Hook("policy", self._path, POLICY_SECS, ANSWER_BYTES, (name, metadata)), serial=serial)

    def _tell(self, problem: str) -> None:
        """Log it once, until it changes: this is asked for each call."""
        if problem != self._told:
            journal.warning("%s", problem)
        self._told = problem


def _refusal(name: str, said: dict[str, str]) -> Denied | ScriptError:
    message = said.get("error message")
    if not message:
        return Denied(f"Tool '{name}' blocked by policy")
    try:
        code = int(said.get("error code", ""))
    except ValueError:
        code = DEFAULT_CODE
    return ScriptError(code if code in ERROR_CODES else DEFAULT_CODE, message, data=_data(said.get("error data", "")))


def _data(text: str) -> object:
    """Parse JSON; return any other text unchanged, and None for no text."""
    try:
        value: object = jsontext.loads(text) if text else None
    except ValueError:
        return text
    return value if jsontext.is_writable(value) else text
