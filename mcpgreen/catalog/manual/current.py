"""Decide which registration counts now: `register.json`, else the answer of `register.sh`, else none.

`rules` reads the files; this module decides when to read them again: when a file or its trustworthiness has changed,
and after a time to live. With a static registry, the first registration that can be used counts for good. The answer of
the hook is kept. A server runs the hook in time (`run_hook`), and `current` returns the answer of its last run. Without
a server, `current` runs the hook itself.

Rule: nothing here switches greenlets, apart from the `run` that `run_hook` is given.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen.catalog.manual import rules
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.errors import ProjectError

if TYPE_CHECKING:
    from mcpgreen.project.project import Project
    from mcpgreen.running.hooks.shell import Hook, HookEnd, HookShell
    from mcpgreen.settings.settings import Settings

Fingerprint = tuple[Any, ...]
DEFAULT_TTL_SECS = 5.0  # mcp-bash takes 0 for the default
Said = rules.Registration | ProjectError | None


class Statement(NamedTuple):
    """The registration in a file, or the error in it. It is valid as long as the fingerprint is the same."""

    fingerprint: Fingerprint | None  # None: the file was just written, and may be written again without a new time
    read_at: float
    said: Said


class Registrar:
    """The registration of one project, as of now."""

    def __init__(
        self,
        project: Project,
        *,
        settings: Settings,
        shell: HookShell | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With a `shell`, `current` runs the hook and waits for it. A server gives none."""
        self._project = project
        self._settings = settings
        self._shell = shell
        self._clock = clock
        self._ttl_secs: float = settings.register_ttl or DEFAULT_TTL_SECS
        self._json_path = project.server_file("register.json")
        self._hook_path = project.server_file("register.sh")
        self._json: Statement | None = None
        self._hook: Statement | None = None
        self._is_final = False
        self._counting: rules.Registration | None = None

    def current(self) -> rules.Registration | None:
        """The registration that counts now; None if all items are found on disk. Raises ProjectError if it cannot be
        used."""
        if not self._is_final:
            self._counting = self._said_now()
            self._is_final = self._settings.is_static and not self.is_hook_due()
        return self._counting

    def _said_now(self) -> rules.Registration | None:
        said = self._read_json()
        if said is None and self._settings.allow_project_hooks:
            if self._shell is not None and self.is_hook_due():
                self.run_hook(self._shell.run_blocking)
            said = self._hook.said if self._hook is not None and os.path.lexists(self._hook_path) else None
        if isinstance(said, ProjectError):
            raise ProjectError(said.path, said.reason)
        return said

    def is_hook_due(self) -> bool:
        """Tell whether `register.sh` counts and has not been run since it changed."""
        if not self.has_hook():
            return False
        if self._hook is None or self._settings.is_static:
            return self._hook is None
        return self._hook.fingerprint != _fingerprint_of(self._project, self._hook_path)

    def is_hook_old(self) -> bool:
        """Tell whether the last run was so long ago that the answer may be another one now."""
        if self._hook is None or self._settings.is_static or not self.has_hook():
            return False
        return self._clock() - self._hook.read_at >= self._ttl_secs

    def run_hook(self, run: Callable[[Hook], HookEnd]) -> None:
        """Run `register.sh` by `run`, and keep its answer."""
        fingerprint = _fingerprint_of(self._project, self._hook_path)
        said = _said_by(lambda: rules.run_register_sh(self._project, self._settings, run=run))
        self._hook = Statement(fingerprint, self._clock(), said)

    def has_hook(self) -> bool:
        """Tell whether `register.sh` counts."""
        return (
            not self._is_final
            and self._settings.allow_project_hooks
            and os.path.lexists(self._hook_path)
            and not os.path.lexists(self._json_path)
        )

    def _read_json(self) -> Said:
        fingerprint = _fingerprint_of(self._project, self._json_path)
        if fingerprint is None:
            self._json = None
            return None
        known, now = self._json, self._clock()
        if known is None or known.fingerprint != fingerprint or now - known.read_at >= self._ttl_secs:
            said = _said_by(lambda: rules.read_register_json(self._project))
            known = self._json = Statement(fingerprint if _is_settled(fingerprint) else None, now, said)
        return known.said


def _said_by(read: Callable[[], rules.Registration | None]) -> Said:
    try:
        return read()
    except ProjectError as error:
        return error


def _fingerprint_of(project: Project, path: str) -> Fingerprint | None:
    """A value that changes with the file and with the right to trust it; None if there is no such file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    problem = project.ground(project.server_dir).problem_with_hook(path)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, problem)


def _is_settled(fingerprint: Fingerprint) -> bool:
    changed_at_ns: int = fingerprint[0]
    return changed_at_ns < time.time_ns() - SETTLING_NS
