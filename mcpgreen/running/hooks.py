"""Run each of a project's shell hooks in a separate bash, and read its answer as data.

A hook is a file that `hook_prelude.sh` sources, so it finds the functions that are promised to it; what it has to say
comes back through a pipe. Nothing of it can change the server. Whether a hook may run at all is decided by the caller
that runs it, see `trust`.

There are two ways to run a hook: `run_blocking` without a server (plain `subprocess`; everything else waits), and `run`
in a server, where the runner stops what has to be stopped.

Rule: imported before the first answer when a project has an `env.sh`, so nothing here imports gevent at the top.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen import journal
from mcpgreen.errors import ProjectError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpgreen.running.runner import Runner
    from mcpgreen.settings.settings import Settings

PRELUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook_prelude.sh")
ENVIRONMENT_SECS = 10.0
ENVIRONMENT_BYTES = 4 << 20
STDERR_TAIL_CHARS = 2000
POLL_MS = 50
READ_BYTES = 65536
# What a shell sets, or does not pass on, by itself says nothing about the hook.
NOT_THE_HOOKS = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "PS1", "PS2", "PPID", "RANDOM", "SRANDOM", "HISTCMD"})

LOG_BY_LEVEL = {"debug": journal.debug, "info": journal.info, "notice": journal.info, "warning": journal.warning}


class Hook(NamedTuple):
    """A hook to be run: its purpose, its file, its limits, and its input."""

    verb: str
    path: str
    secs: float
    limit_bytes: int
    arguments: tuple[str, ...] = ()

    def command(self, control_fd: int) -> list[str]:
        return ["bash", "--noprofile", "--norc", PRELUDE, self.verb, str(control_fd), self.path, *self.arguments]

    def failure(self, status: int | None, *, is_too_long: bool) -> str:
        """`status` is None if it had to be stopped."""
        if is_too_long:
            return f"it printed more than {self.limit_bytes} bytes"
        if status is None:
            return f"it took longer than {self.secs:g} s"
        return f"it exited with status {128 - status if status < 0 else status}" if status else ""


class HookEnd(NamedTuple):
    """How a hook ended. `failure` says what went wrong, as the end of a sentence; it is empty after status 0."""

    failure: str
    answer: bytes
    stdout: bytes
    stderr: bytes

    @property
    def stderr_tail(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()[-STDERR_TAIL_CHARS:]


class HookShell:
    """Where the hooks of one project run: its directory, and all variables of the server but the secret ones."""

    def __init__(
        self, environ: Mapping[str, str], *, settings: Settings, directory: str, runner: Runner | None = None
    ) -> None:
        self._environ = environ
        self._settings = settings
        self._directory = directory
        self._runner = runner

    def run(self, hook: Hook, *, serial: int | None = None) -> HookEnd:
        """Run a hook by the runner of the server: other greenlets go on, and a cancelled one stops its hook. `serial`
        is the number of the call that it is run for, if it is for one."""
        from mcpgreen.running.processes.pipes import Capture
        from mcpgreen.running.processes.run import Deadline, Ending, Limits, Script, ScriptRun
        from mcpgreen.running.processes.spawning import CONTROL_FD
        from mcpgreen.running.scripts.environment import packed

        assert self._runner is not None, "without a server there is only run_blocking"
        answer = Capture(limit_bytes=hook.limit_bytes)
        script = Script(os.path.basename(hook.path), hook.path, hook.command(CONTROL_FD))
        limits = Limits.of(self._settings, stdout_bytes=hook.limit_bytes)
        serial = serial or self._runner.next_serial()
        run = ScriptRun(script, packed(self._variables), Deadline(hook.secs), limits, serial, answer.take)
        try:
            outcome = self._runner.run(run)
        except OSError as error:
            return _not_started(error)
        is_too_long = answer.was_exceeded or outcome.ended_by in (Ending.STDOUT_LIMIT, Ending.STDERR_LIMIT)
        status = None if outcome.ended_by == Ending.DEADLINE else outcome.exit_code
        failure = hook.failure(status, is_too_long=is_too_long)
        return HookEnd(failure, b"".join(answer.chunks()), b"".join(outcome.stdout), outcome.stderr)

    def run_blocking(self, hook: Hook, *, shows_stderr: bool = False) -> HookEnd:
        if not self._settings.core_dumps:
            from mcpgreen.running import system

            system.shut_out_others()
        return run_blocking(hook, env=self._variables, directory=self._directory, shows_stderr=shows_stderr)

    @cached_property
    def _variables(self) -> dict[str, str]:
        from mcpgreen.running.scripts.environment import hook_environment

        return hook_environment(self._environ, settings=self._settings, project_root=self._directory)


class Sourced(NamedTuple):
    """What a file did to the environment: the variables that it sets or changes, and the ones that it unsets."""

    changed: dict[str, str]
    removed: frozenset[str]

    def applied_to(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {**{name: environ[name] for name in environ if name not in self.removed}, **self.changed}


def sourced_variables(path: str, environ: Mapping[str, str], *, directory: str) -> Sourced:
    """Source a file in this environment. Raises ProjectError; what a file does before it fails does not count."""
    hook = Hook("environment", path, ENVIRONMENT_SECS, ENVIRONMENT_BYTES)
    end = run_blocking(hook, env=environ, directory=directory, shows_stderr=True)
    if end.failure:
        raise ProjectError(path, end.failure)
    lines = end.answer.decode("utf-8", "surrogateescape").split("\0")
    after = {name: value for name, equals, value in (line.partition("=") for line in lines) if equals}
    changed = {name: value for name, value in after.items() if _is_variable(name) and environ.get(name) != value}
    return Sourced(changed, frozenset(name for name in environ if _is_variable(name) and name not in after))


def _is_variable(name: str) -> bool:
    """Tell whether this is a variable that a file can change."""
    return name.isidentifier() and name not in NOT_THE_HOOKS and not name.startswith("BASH_")


def records_in(answer: bytes) -> list[tuple[str, str]]:
    """Return what a hook recorded, in order: what it is, and its content. Log messages among it go to the journal."""
    texts = answer.decode("utf-8", "replace").split("\0")
    records = []
    for what, content in zip(texts[0:-1:2], texts[1:-1:2], strict=False):
        if what.startswith("log "):
            LOG_BY_LEVEL.get(what[4:], journal.error)("%s", content)
        else:
            records.append((what, content))
    return records


def run_blocking(hook: Hook, *, env: Mapping[str, str], directory: str, shows_stderr: bool = False) -> HookEnd:
    """Run a hook and wait for it. With `shows_stderr` it writes to our own."""
    import signal
    import subprocess

    read_end, write_end = os.pipe()
    try:
        child = subprocess.Popen(
            hook.command(write_end),
            env=env,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if shows_stderr else subprocess.PIPE,
            pass_fds=(write_end,),
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        os.close(read_end)
        return _not_started(error)
    finally:
        os.close(write_end)
    streams = [stream.fileno() for stream in (child.stdout, child.stderr) if stream is not None]
    with child, open(read_end, "rb", buffering=0):
        until = time.monotonic() + hook.secs
        said, has_ended = heard_from(child, [read_end, *streams], until=until, max_bytes=hook.limit_bytes)
        if not has_ended:
            os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
    failure = hook.failure(status if has_ended else None, is_too_long=max(map(len, said)) > hook.limit_bytes)
    answer, stdout, stderr = [*said, b""][:3]
    return HookEnd(failure, answer, stdout, stderr)


def heard_from(child: Any, pipes: Sequence[int], *, until: float, max_bytes: int) -> tuple[list[bytes], bool]:
    """Read what a program writes to these pipes, until it has ended, has written too much to one of them, or the time
    is up. Return what came from each, and whether the program has ended; other processes may hold the pipes longer.
    Uses neither `wait` nor `sleep`: in a server, other greenlets would run and reap the child."""
    import select

    poller = select.poll()
    for pipe in pipes:
        poller.register(pipe, select.POLLIN)
    said = dict.fromkeys(pipes, b"")
    open_pipes = set(pipes)
    while True:
        has_ended = child.poll() is not None
        # A process that has closed everything is about to end.
        pause_ms = 0 if has_ended else POLL_MS if open_pipes else 1
        readable = poller.poll(min(pause_ms, max(0, (until - time.monotonic()) * 1000)))
        for pipe, _ in readable:
            chunk = os.read(pipe, READ_BYTES)
            said[pipe] += chunk
            if not chunk:
                poller.unregister(pipe)
                open_pipes.discard(pipe)
        is_too_much = any(len(each) > max_bytes for each in said.values())
        if (has_ended and not readable) or is_too_much or time.monotonic() >= until:
            return list(said.values()), has_ended


def _not_started(error: OSError) -> HookEnd:
    return HookEnd(f"bash cannot be started: {error.strerror}", b"", b"", b"")
