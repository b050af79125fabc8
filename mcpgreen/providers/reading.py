"""Read a URI with a script in the project's providers/, or else with a built-in provider.

Files, echoes and apps are read in the server. A provider that uses the network runs as a process, so that a hanging
connection can be killed and nothing of it stays in the server. All programs keep the convention in `exits`.

A script is a file in providers/ that is executable, is a shell script, or begins with `#!`. Its name without the suffix
is the name of the provider. Nothing about it is cached, so that a new, changed or removed script counts at once.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import read_start
from mcpgreen.catalog.schemes import NETWORK_PROVIDERS, PROVIDERS
from mcpgreen.errors import InternalError, OutputTooLarge
from mcpgreen.files.confined import FileFailure, Private
from mcpgreen.project.project import Project
from mcpgreen.providers.exits import ProviderFailure, rpc_error
from mcpgreen.providers.local import PROVIDE, as_provider_failure, html_of, open_path, path_of_uri
from mcpgreen.running.processes.pipes import OnChunk, OutputPlace
from mcpgreen.running.processes.run import Deadline, Ending, Limits, Script, ScriptRun, unheard
from mcpgreen.running.runner import Runner, run_script
from mcpgreen.running.scripts import shebang
from mcpgreen.running.scripts.environment import ProviderEnvironment
from mcpgreen.running.scripts.scratch import StateDir
from mcpgreen.settings.settings import Settings
from mcpgreen.text.uris import is_within

LARGE_FILE_BYTES = 1 << 18
Listen = Callable[[Deadline], OnChunk]  # makes the reader of the control pipe of a run
LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.sh")
MAX_FILES = 2000  # in providers/; reading more names would block the server, and a script may have made them


class Request(NamedTuple):
    """What to read. `variables` are for a script, `secs` is its time limit if it differs from the settings, and `owner`
    is the caller that it counts for. A file is read only in the `allowed` directories; `path` is the file if the URI
    does not name it."""

    uri: str
    provider: str
    variables: Mapping[str, str]
    path: str | None = None
    allowed: Sequence[str] = ()
    secs: float | None = None
    owner: Hashable = None


class Content(NamedTuple):
    """The content of a resource. `name` helps to find its MIME type. Each call of `chunks` begins at the start; it
    raises RpcError for content that is too large."""

    name: str
    chunks: Callable[[], Iterator[bytes]]
    close: Callable[[], None]


def _held(chunks: Sequence[bytes], *, name: str, place: OutputPlace | None = None) -> Content:
    """Content in memory. Closing it releases the place of a script's output."""

    def close() -> None:
        nonlocal chunks
        chunks = ()
        if place is not None:
            place.release()

    return Content(name, lambda: iter(chunks), close)


class Providers:
    def __init__(
        self,
        project: Project,
        settings: Settings,
        *,
        runner: Runner,
        environment: ProviderEnvironment,
        state_dir: StateDir,
        reason_in: Callable[[bytes], str],
    ) -> None:
        """`reason_in` returns the part of a script's stderr that a client may read."""
        self._project = project
        self._state_dir = state_dir
        self._settings = settings
        self._runner = runner
        self._environment = environment
        self._reason_in = reason_in

    def needs_process(self, provider: str) -> bool:
        return provider in NETWORK_PROVIDERS or self.has_own(provider)

    def knows(self, provider: str) -> bool:
        return provider in PROVIDERS or self.has_own(provider)

    def has_own(self, provider: str) -> bool:
        """Tell whether the project has a script for this provider."""
        return script_for(provider, self._project) is not None

    def local_path(self, request: Request) -> str | None:
        """Return the path of the file that would be read in the server, or None. It may not exist."""
        if request.provider != "file" or self.needs_process("file"):
            return None
        try:
            return self._path_of(request)
        except ProviderFailure:
            return None

    def is_large(self, request: Request) -> bool:
        """Tell whether a large file would be read, which takes long."""
        path = self.local_path(request)
        try:
            return path is not None and os.stat(path).st_size > LARGE_FILE_BYTES
        except (OSError, ValueError):
            return False

    def is_below(self, request: Request, directories: Sequence[str]) -> bool:
        """Tell whether a file in one of these directories would be read."""
        path = self.local_path(request)
        try:
            return path is not None and any(is_within(os.path.realpath(path), each) for each in directories)
        except OSError:  # the path is changing
            return False

    def read(self, request: Request, *, listen: Listen | None = None, serial: int | None = None) -> Content:
        """Read a resource. Raises the RpcError for the client. With `listen` and the `serial` of a call, a script can
        report progress and ask the client."""
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
        # Unlike the programs, the server knows the roots of the client, and has opened the project.
        if request.provider == "file":
            path, limit_bytes = self._path_of(request), self._settings.max_resource_bytes
            private, allowed, skills_dir = self._project.private, request.allowed, self._project.skills_dir
            if request.path is not None and is_within(path, skills_dir):
                from mcpgreen.catalog.skills import MAX_BYTES

                limit_bytes = max(limit_bytes, MAX_BYTES)  # clients of skills rely on this limit
                private, allowed = Private(skills_dir), [skills_dir]  # which may itself be hidden
            file = open_path(path, allowed=allowed, private=private, limit_bytes=limit_bytes)

            def chunks() -> Iterator[bytes]:
                try:
                    yield from file.chunks(limit_bytes)
                except FileFailure as failure:
                    problem = as_provider_failure(failure)
                    raise rpc_error(problem.status, problem.text, request.uri) from failure

            return Content(path, chunks, file.close)
        if request.provider == "ui":
            html = html_of(request.uri, self._project, limit_bytes=self._settings.max_resource_bytes)
            return _held([html], name=request.uri)
        out = io.BytesIO()
        PROVIDE[request.provider](request.uri, self._settings, out)
        return _held([out.getvalue()], name=request.uri)

    def _path_of(self, request: Request) -> str:
        return request.path or path_of_uri(request.uri, base=self._project.root)

    def _run(self, script: Script, request: Request, listen: Listen | None, serial: int | None) -> Content:
        secs: float = request.secs or self._settings.resource_timeout_secs
        variables = {
            # The separator is a colon, so a path with a colon would become two paths.
            "MCP_RESOURCES_ROOTS": ":".join(each for each in request.allowed if ":" not in each),
            "MCPBASH_PROVIDERS_DIR": self._project.providers_dir,
            "MCPBASH_RESOURCES_DIR": self._project.resources_dir,
            "MCPBASH_SERVER_DIR": self._project.server_dir,
            **request.variables,
        }
        self._runner.prepare()  # starts the guardian, which removes the state directory after a crash
        # The server removes this directory when it ends, with the files that a killed provider left in it.
        place = self._state_dir.require().path
        env = self._environment.for_run(request.provider, {**variables, "TMPDIR": place, "MCPBASH_STATE_DIR": place})
        deadline = Deadline(secs)
        limits = Limits.of(self._settings, stdout_bytes=self._settings.max_resource_bytes)
        on_control = listen(deadline) if listen is not None else unheard
        serial = serial or self._runner.next_serial()
        run = ScriptRun(script, env, deadline, limits, serial, on_control, request.owner)
        outcome = run_script(self._runner, run)
        if outcome.ended_by == Ending.STDOUT_LIMIT:
            raise OutputTooLarge(f"Resource content exceeds {self._settings.max_resource_bytes} bytes")
        if outcome.ended_by == Ending.DEADLINE:
            raise InternalError(f"Resource provider '{request.provider}' timed out after {secs:g}s")
        if outcome.exit_code != 0:
            raise rpc_error(outcome.exit_code, self._reason_in(outcome.stderr), request.uri)
        # The part of the URI that ends with a file name. With git that is the fragment.
        is_git = request.provider == "git"
        name = request.uri if is_git else request.uri.partition("#")[0].partition("?")[0]
        return _held(outcome.stdout, name=name, place=outcome.place)


def script_for(provider: str, project: Project) -> Script | None:
    directory = project.providers_dir
    for name in _names_for(provider, directory):
        path = os.path.join(directory, name)
        is_executable = os.access(path, os.X_OK)
        try:
            head = b"" if is_executable else read_start(path, shebang.LINE_BYTES)
        except OSError:
            continue
        command = shebang.command_of(path, head, is_executable=is_executable) if os.path.isfile(path) else None
        if command is not None:
            return Script(f"Resource provider '{provider}'", path, command, project.ground(directory))
    return None


def why_missing(provider: str, directory: str) -> str:
    """Return why the project does not have this provider, as the end of a sentence."""
    place = os.path.basename(directory)
    present = _names_for(provider, directory)
    if present:
        return f"{place}/{present[0]} is neither executable nor a script (chmod +x)"
    return f"it needs an executable file {place}/{provider}, with or without a suffix"


def _names_for(provider: str, directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, MAX_FILES)]
            if next(entries, None) is not None:
                _warn_of_too_many(os.path.basename(directory))
    except OSError:
        return []
    return sorted(name for name in names if os.path.splitext(name)[0] == provider and not name.startswith("."))


@cache  # once
def _warn_of_too_many(place: str) -> None:
    journal.warning("%s/ has more than %d files; the others are ignored", place, MAX_FILES)
