"""Who reads an address: a script in the project's providers/ first, else one of ours.

All keep one calling convention (`exits`). Files, echoes and pages are read here, in the server; what uses the network
is run as a process, so that a hanging connection can be killed and nothing of it stays in the server.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from mcpgreen.catalog.project import Project
from mcpgreen.confined import FileFailure, OpenFile
from mcpgreen.errors import InternalError, OutputTooLarge
from mcpgreen.providers.exits import ProviderFailure, rpc_error
from mcpgreen.providers.file import as_provider_failure, open_path, path_of_uri
from mcpgreen.running.deadline import Deadline
from mcpgreen.running.process import Ending, Outcome
from mcpgreen.running.provider_environment import ProviderEnvironment
from mcpgreen.running.runner import Runner
from mcpgreen.running.scratch import StateDir
from mcpgreen.running.starting import Script, run_script

NETWORK_PROVIDERS = ("git", "https")
OUR_PROVIDERS = frozenset({"echo", "file", "ui", *NETWORK_PROVIDERS})
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.sh")


class Request(NamedTuple):
    """What is to be read, and within which directories if it is a file. `variables` are seen by a script; `path` is the
    file if the address does not say it."""

    uri: str
    provider: str
    variables: Mapping[str, str]
    path: str | None = None
    allowed: Sequence[str] = ()


class Content(Protocol):
    """What was read. `name` helps to tell what it is."""

    name: str

    def chunks(self) -> Iterator[bytes]:
        """From the beginning, each time. Raises RpcError for more than is allowed."""

    def close(self) -> None: ...


class Held:
    """Content in memory."""

    def __init__(self, chunks: Sequence[bytes], *, name: str) -> None:
        self.name = name
        self._chunks = chunks

    def chunks(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def close(self) -> None:
        self._chunks = ()


class Opened:
    """Content in a file that is open."""

    def __init__(self, file: OpenFile, uri: str, limit_bytes: int) -> None:
        self.name = file.path
        self._file = file
        self._uri = uri
        self._limit_bytes = limit_bytes

    def chunks(self) -> Iterator[bytes]:
        try:
            yield from self._file.chunks(self._limit_bytes)
        except FileFailure as failure:
            problem = as_provider_failure(failure)
            raise rpc_error(problem.status, problem.text, self._uri) from failure

    def close(self) -> None:
        self._file.close()


class Providers:
    """Reads for one project."""

    def __init__(
        self,
        project: Project,
        settings: Any,
        *,
        runner: Runner,
        environment: ProviderEnvironment,
        state_dir: StateDir,
    ) -> None:
        self._project = project
        self._state_dir = state_dir
        self._settings = settings
        self._runner = runner
        self._environment = environment
        self._scripts: dict[str, list[str]] = {}
        self._scripts_stamp: int | None = None

    def runs_script(self, provider: str) -> bool:
        """Whether reading takes a process."""
        return provider in NETWORK_PROVIDERS or self._script_of(provider) is not None

    def knows(self, provider: str) -> bool:
        return provider in OUR_PROVIDERS or self._script_of(provider) is not None

    def local_path(self, request: Request) -> str | None:
        """The file that would be read, if it is one and we read it ourselves; it need not exist."""
        if request.provider != "file" or self.runs_script("file"):
            return None
        try:
            return self._path_of(request)
        except ProviderFailure:
            return None

    def read(self, request: Request) -> Content:
        """Raises the RpcError that a client should see."""
        script = self._script_of(request.provider)
        try:
            if script is not None:
                return self._run([*script, request.uri], request)
            if request.provider in NETWORK_PROVIDERS:
                return self._run(["sh", LAUNCHER, request.provider, request.uri], request)
            if request.provider == "file":
                return self._open(request)
            if request.provider == "echo":
                return _echo(request.uri, self._settings)
            if request.provider == "ui":
                return self._page(request)
        except ProviderFailure as failure:
            raise rpc_error(failure.status, failure.text, request.uri) from failure
        raise InternalError(f"Unsupported resource provider '{request.provider}'")

    def _open(self, request: Request) -> Content:
        limit_bytes: int = self._settings.max_resource_bytes
        file = open_path(
            self._path_of(request),
            allowed=request.allowed,
            denied=[self._project.server_dir],
            limit_bytes=limit_bytes,
        )
        return Opened(file, request.uri, limit_bytes)

    def _page(self, request: Request) -> Content:
        from mcpgreen.providers.ui import html_of

        html = html_of(request.uri, self._project, limit_bytes=self._settings.max_ui_resource_bytes)
        return Held([html], name=request.uri)

    def _path_of(self, request: Request) -> str:
        return request.path or path_of_uri(request.uri, base=self._project.root)

    def _run(self, command: Sequence[str], request: Request) -> Content:
        secs: float = self._settings.resource_timeout_secs
        variables = {
            "MCP_RESOURCES_ROOTS": ":".join(request.allowed),
            "MCPBASH_PROVIDERS_DIR": self._project.providers_dir,
            "MCPBASH_RESOURCES_DIR": self._project.resources_dir,
            **request.variables,
        }
        env = self._environment.for_run(request.provider, variables)
        self._state_dir.new_call()
        env["TMPDIR"] = self._state_dir.path  # what a killed provider leaves there goes with the server
        env.setdefault("MCPGREEN_PYTHON", sys.executable)
        script = Script(f"Resource provider '{request.provider}'", command[0], command)
        outcome = run_script(self._runner, script, env=env, deadline=Deadline(secs), on_control=_ignore)
        return self._content(request, outcome, secs)

    def _content(self, request: Request, outcome: Outcome, secs: float) -> Content:
        limit_bytes = self._settings.max_resource_bytes
        if outcome.ended_by == Ending.STDOUT_LIMIT or sum(map(len, outcome.stdout)) > limit_bytes:
            raise OutputTooLarge(f"Resource content exceeds {limit_bytes} bytes")
        if outcome.ended_by == Ending.DEADLINE:
            raise InternalError(f"Resource provider '{request.provider}' timed out after {secs:g}s")
        if outcome.exit_code != 0:
            reason = outcome.stderr.decode("utf-8", "replace")
            raise rpc_error(outcome.exit_code, reason, request.uri)
        return Held(outcome.stdout, name=request.uri)

    def _script_of(self, provider: str) -> list[str] | None:
        """The project's own script. Which there are is read again when the directory has changed."""
        try:
            stamp = os.stat(self._project.providers_dir).st_mtime_ns
        except OSError:
            return None
        if stamp != self._scripts_stamp:
            self._scripts = _scripts_in(self._project.providers_dir)
            self._scripts_stamp = stamp
        return self._scripts.get(provider)


def _scripts_in(directory: str) -> dict[str, list[str]]:
    """How each provider of the project is started, by its name."""
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name.startswith(".") or not os.path.isfile(path):
            continue
        if os.access(path, os.X_OK):
            found.setdefault(os.path.splitext(name)[0], [path])
        elif name.endswith((".sh", ".bash")):
            found.setdefault(os.path.splitext(name)[0], ["bash", path])
    return found


def _echo(uri: str, settings: Any) -> Content:
    from mcpgreen.providers import echo

    out = io.BytesIO()
    echo.provide(uri, settings, out)
    return Held([out.getvalue()], name=uri)


def _ignore(chunk: bytes) -> None:
    """A provider has nobody to report to."""
