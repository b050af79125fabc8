"""Which registration counts now: `register.json`, else what `register.sh` said, else none.

`rules` knows what the files may say, this module when to read them again: when a file or the right to trust it
has changed, and after a time to live. With a static registry, the first that can be used counts for good. The hook's
answer is kept as well; whoever has a server runs the hook in time (`run_hook` with the server's way to run things), and
`current` runs it itself where there is none. In a server it gives what the last run said, also if another is due.

Rule: nothing here switches greenlets, apart from the `run` that `run_hook` is given.
"""

from __future__ import annotations

import os
import time

from mcpgreen.catalog.manual import rules
from mcpgreen.catalog.tree_scan import SETTLING_NS
from mcpgreen.errors import ProjectError
from mcpgreen.settings.table import default_of
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    from mcpgreen.catalog.manual.rules import Registration
    from mcpgreen.project.project import Project
    from mcpgreen.running.hooks.shell import Hook, HookEnd, HookShell
    from mcpgreen.settings.settings import Settings

    Fingerprint = tuple[Any, ...]
    Said = Union[Registration, ProjectError, None]  # noqa: UP007  (the runtime of this alias is type checking only)


class Statement(NamedTuple):
    """What a file said, or why it could not be taken, and by what to see whether that still holds."""

    fingerprint: Fingerprint | None  # None: the file was just written, and may be again without its times changing
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
        """With a `shell` the hook is run when it is needed, and everything waits for it: not in a server."""
        self._project = project
        self._settings = settings
        self._shell = shell
        self._clock = clock
        self._ttl_secs: float = settings.register_ttl or default_of("register_ttl")
        self._json_path = project.server_file("register.json")
        self._hook_path = project.server_file("register.sh")
        self._json: Statement | None = None
        self._hook: Statement | None = None
        self._is_final = False
        self._counting: Registration | None = None

    def current(self) -> Registration | None:
        """What counts now; None if everything is to be found on disk. Raises ProjectError if it cannot be used."""
        if not self._is_final:
            self._counting = self._said_now()
            self._is_final = self._settings.static_registry and not self.is_hook_due()
        return self._counting

    def _said_now(self) -> Registration | None:
        said = self._read_json()
        if said is None and self._settings.allow_project_hooks:
            if self._shell is not None and self.is_hook_due():
                self.run_hook(self._shell.run_blocking)
            said = self._hook.said if self._hook is not None and os.path.lexists(self._hook_path) else None
        if isinstance(said, ProjectError):
            raise ProjectError(said.path, said.reason)
        return said

    def is_hook_due(self) -> bool:
        """Whether `register.sh` decides and has not been run as it is now."""
        if not self._does_hook_decide():
            return False
        if self._hook is None or self._settings.static_registry:
            return self._hook is None
        return self._hook.fingerprint != _fingerprint_of(self._project, self._hook_path)

    def is_hook_old(self) -> bool:
        """Whether it was run so long ago that it may have something else to say."""
        if self._hook is None or self._settings.static_registry or not self._does_hook_decide():
            return False
        return self._clock() - self._hook.read_at >= self._ttl_secs

    def run_hook(self, run: Callable[[Hook], HookEnd]) -> None:
        """Run `register.sh` in this way and keep what it says."""
        fingerprint = _fingerprint_of(self._project, self._hook_path)
        said = _said_by(lambda: rules.run_register_sh(self._project, self._settings, run=run))
        self._hook = Statement(fingerprint, self._clock(), said)

    def _does_hook_decide(self) -> bool:
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
            said = _said_by(lambda: rules.read_register_json(self._project, self._settings))
            known = self._json = Statement(fingerprint if _is_settled(fingerprint) else None, now, said)
        return known.said


def _said_by(read: Callable[[], Registration | None]) -> Said:
    try:
        return read()
    except ProjectError as error:
        return error


def _fingerprint_of(project: Project, path: str) -> Fingerprint | None:
    """What changes when the file changes, or who may write to it; None if there is no such file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    problem = project.ground(project.server_dir).problem_with_hook(path)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, problem)


def _is_settled(fingerprint: Fingerprint) -> bool:
    changed_at_ns: int = fingerprint[0]
    return changed_at_ns < time.time_ns() - SETTLING_NS
