"""Who reads a URI: a script in the project's providers/ first, else one of ours.

All keep one calling convention (`exits`). Files, echoes and apps are read here, in the server; what uses the network
is run as a process, so that a hanging connection can be killed and nothing of it stays in the server.
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.schemes import NETWORK_PROVIDERS, PROVIDERS
from mcpgreen.errors import InternalError, OutputTooLarge
from mcpgreen.files.confined import FileFailure, OpenFile
from mcpgreen.project.project import Project
from mcpgreen.providers.exits import ProviderFailure, rpc_error
from mcpgreen.providers.file import as_provider_failure, open_path, path_of_uri
from mcpgreen.providers.scripts import script_for, why_missing
from mcpgreen.running.processes.deadline import Deadline
from mcpgreen.running.processes.output_places import OutputPlace
from mcpgreen.running.processes.pipes import OnChunk
from mcpgreen.running.processes.process import Ending
from mcpgreen.running.processes.runner import Runner
from mcpgreen.running.scripts.environment import ProviderEnvironment
from mcpgreen.running.scripts.launch import Limits, Script, ScriptRun, run_script, unheard
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.settings.settings import Settings
from mcpgreen.text.uris import is_within

LARGE_FILE_BYTES = 1 << 18
REASON_BYTES = 4096  # of what a script wrote to stderr, the end
Listen = Callable[[Deadline], OnChunk]  # from the deadline of a run to who hears its control pipe
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.sh")


class Request(NamedTuple):
    """What is to be read, and within which directories if it is a file. `variables` are seen by a script; `path` is the
    file if the URI does not say it, `secs` how long a script may take if that is not as the settings say."""

    uri: str
    provider: str
    variables: Mapping[str, str]
    path: str | None = None
    allowed: Sequence[str] = ()
    secs: float | None = None


class Content(NamedTuple):
    """What was read. `name` helps to tell what it is. `chunks` begins anew each time, and raises RpcError for more than
    is allowed."""

    name: str
    chunks: Callable[[], Iterator[bytes]]
    close: Callable[[], None]


def _held(chunks: Sequence[bytes], *, name: str, place: OutputPlace | None = None) -> Content:
    """Content in memory, with the place that it has there if a script printed it."""

    def close() -> None:
        nonlocal chunks
        chunks = ()
        if place is not None:
            place.release()

    return Content(name, lambda: iter(chunks), close)


def _opened(file: OpenFile, uri: str, limit_bytes: int, *, name: str) -> Content:
    """Content in a file that is open."""

    def chunks() -> Iterator[bytes]:
        try:
            yield from file.chunks(limit_bytes)
        except FileFailure as failure:
            problem = as_provider_failure(failure)
            raise rpc_error(problem.status, problem.text, uri) from failure

    return Content(name, chunks, file.close)


class Providers:
    """Reads for one project."""

    def __init__(
        self,
        project: Project,
        settings: Settings,
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

    def runs_script(self, provider: str) -> bool:
        """Whether reading takes a process."""
        return provider in NETWORK_PROVIDERS or self.has_own(provider)

    def knows(self, provider: str) -> bool:
        return provider in PROVIDERS or self.has_own(provider)

    def has_own(self, provider: str) -> bool:
        """Whether a script of the project reads it."""
        return script_for(provider, self._project) is not None

    def local_path(self, request: Request) -> str | None:
        """The file that would be read, if it is one and we read it ourselves; it need not exist."""
        if request.provider != "file" or self.runs_script("file"):
            return None
        try:
            return self._path_of(request)
        except ProviderFailure:
            return None

    def is_large(self, request: Request) -> bool:
        """Whether what would be read is a file that takes its time."""
        path = self.local_path(request)
        try:
            return path is not None and os.stat(path).st_size > LARGE_FILE_BYTES
        except (OSError, ValueError):
            return False

    def is_below(self, request: Request, directories: Sequence[str]) -> bool:
        """Whether what would be read is a file that lies in one of these directories now."""
        path = self.local_path(request)
        try:
            real_path = os.path.realpath(path) if path is not None else None
        except OSError:  # it changes while we look
            return False
        return real_path is not None and any(is_within(real_path, each) for each in directories)

    def read(self, request: Request, *, listen: Listen | None = None, serial: int | None = None) -> Content:
        """Raises the RpcError that a client should see. A script has nobody to report to, or to ask, unless there is
        somebody to `listen`, and a call with a number."""
        script = script_for(request.provider, self._project)
        try:
            if script is not None:
                return self._run(script._replace(command=[*script.command, request.uri]), request, listen, serial)
            if request.provider not in PROVIDERS:
                missing = why_missing(request.provider, self._project.providers_dir)
                journal.warning("Resource provider '%s' is missing: %s", request.provider, missing)
                raise InternalError(f"Unsupported resource provider '{request.provider}'")
            if request.provider in NETWORK_PROVIDERS:
                command = ["sh", LAUNCHER, request.provider, request.uri]
                launcher = Script(f"Resource provider '{request.provider}'", LAUNCHER, command)
                return self._run(launcher, request, listen, serial)
            return self._read_here(request)
        except ProviderFailure as failure:
            raise rpc_error(failure.status, failure.text, request.uri) from failure

    def _read_here(self, request: Request) -> Content:
        # These two know more in the server than as programs: the roots of the client, and the project.
        if request.provider == "file":
            path, limit_bytes = self._path_of(request), self._settings.max_resource_bytes
            private = self._project.private
            file = open_path(path, allowed=request.allowed, private=private, limit_bytes=limit_bytes)
            return _opened(file, request.uri, limit_bytes, name=path)
        if request.provider == "ui":
            from mcpgreen.providers.ui import html_of

            html = html_of(request.uri, self._project, limit_bytes=self._settings.max_ui_resource_bytes)
            return _held([html], name=request.uri)
        out = io.BytesIO()
        importlib.import_module(f"mcpgreen.providers.{request.provider}").provide(request.uri, self._settings, out)
        return _held([out.getvalue()], name=request.uri)

    def _path_of(self, request: Request) -> str:
        return request.path or path_of_uri(request.uri, base=self._project.root)

    def _run(self, script: Script, request: Request, listen: Listen | None, serial: int | None) -> Content:
        secs: float = request.secs or self._settings.resource_timeout_secs
        variables = {
            # One with a colon in it would read as two others.
            "MCP_RESOURCES_ROOTS": ":".join(each for each in request.allowed if ":" not in each),
            "MCPBASH_PROVIDERS_DIR": self._project.providers_dir,
            "MCPBASH_RESOURCES_DIR": self._project.resources_dir,
            "MCPBASH_SERVER_DIR": self._project.server_dir,
            **request.variables,
        }
        self._runner.prepare()  # starts the guardian, which removes the directory after a crash
        # What a killed provider leaves there goes with the server.
        place = self._state_dir.require().path
        env = self._environment.for_run(request.provider, {**variables, "TMPDIR": place, "MCPBASH_STATE_DIR": place})
        deadline = Deadline(secs)
        limits = Limits.of(self._settings, stdout_bytes=self._settings.max_resource_bytes)
        on_control = listen(deadline) if listen is not None else unheard
        run = ScriptRun(script, env, deadline, limits, serial or self._runner.next_serial(), on_control)
        outcome = run_script(self._runner, run)
        if outcome.ended_by == Ending.STDOUT_LIMIT:
            raise OutputTooLarge(f"Resource content exceeds {self._settings.max_resource_bytes} bytes")
        if outcome.ended_by == Ending.DEADLINE:
            raise InternalError(f"Resource provider '{request.provider}' timed out after {secs:g}s")
        if outcome.exit_code != 0:
            reason = outcome.stderr[-REASON_BYTES:].decode("utf-8", "replace")
            raise rpc_error(outcome.exit_code, reason, request.uri)
        return _held(outcome.stdout, name=_name_in(request), place=outcome.place)


def _name_in(request: Request) -> str:
    """The part of a URI that ends like the name of a file. With git that is in the fragment."""
    return request.uri if request.provider == "git" else request.uri.partition("#")[0].partition("?")[0]
