"""Run `register.sh` in the server before anybody needs what it says, without holding up anything else.

Lists are answered in the reader, which must not wait. So the router asks `is_ready` first, and lets a list that has to
wait do so in a greenlet of its own. Which registration counts, and when a new one is due, is the registrar's business.
"""

from __future__ import annotations

from gevent.lock import Semaphore

from mcpgreen.catalog.registrar import Registrar
from mcpgreen.running.hooks import HookShell


class Registering:
    """One run at a time; who comes meanwhile waits for it."""

    def __init__(self, registrar: Registrar, shell: HookShell) -> None:
        self._registrar = registrar
        self._shell = shell
        self._turn = Semaphore(1)

    def is_ready(self) -> bool:
        """Whether the catalog can be asked without running the hook first."""
        return not self._registrar.is_hook_due()

    def make_ready(self) -> None:
        """Run the hook if that is needed. May wait."""
        with self._turn:
            if self._registrar.is_hook_due():
                self._registrar.run_hook(self._shell.run)

    def is_old(self) -> bool:
        """Whether the hook may have something else to say by now."""
        return self._registrar.is_hook_old()

    def renew(self) -> None:
        """Run the hook again if what it said is old. May wait."""
        with self._turn:
            if self._registrar.is_hook_old():
                self._registrar.run_hook(self._shell.run)
