"""Temporary files: one directory for the server's life, one below it for each call.

A call's directory is where its script finds spilled arguments and leaves error, resource and cancel files. Most calls
write nothing there, so ending one is usually a single `rmdir`.
"""

from __future__ import annotations

import os
import secrets

from mcpgreen import journal

ERROR_FILE = "error.json"
RESOURCES_FILE = "resources"
CANCEL_FILE = "cancelled"
DEBUG_FILE = "debug.log"
MAX_REPORT_BYTES = 16 << 20


class StateDir:
    """The server's own directory, created when the first call needs it and removed with the server."""

    def __init__(self, parent: str, *, token: str, is_kept: bool) -> None:
        self.path = os.path.join(parent, f"mcpgreen.state.{os.getpid()}.{token}")
        self._is_kept = is_kept
        self._exists = False
        self._count = 0

    def new_call(self) -> CallDir:
        if not self._exists:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            self._exists = True
        self._count += 1
        path = f"{self.path}/call.{self._count}"
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            # Somebody cleaned the temporary directory while we were running.
            os.makedirs(path, mode=0o700)
        return CallDir(path)

    def remove(self) -> None:
        if not self._exists:
            return
        if self._is_kept:
            journal.warning("state is kept in %s", self.path)
            return
        _remove_tree(self.path)


class CallDir:
    """The scratch directory of one call."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def spill(self, name: str, content: bytes) -> str:
        path = self.file(name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def mark_cancelled(self) -> None:
        try:
            os.close(os.open(self.file(CANCEL_FILE), os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError as error:
            journal.debug("no cancel file: %s", error)  # the signal that follows says the same

    def report(self, name: str) -> bytes:
        """What the script left in this file; empty when it left nothing."""
        try:
            with open(self.file(name), "rb") as file:
                return file.read(MAX_REPORT_BYTES)
        except OSError:
            return b""

    def is_untouched(self) -> bool:
        """True when the script left nothing at all; the directory is gone then."""
        try:
            os.rmdir(self.path)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            return
        except OSError:
            _remove_tree(self.path)


def new_token() -> str:
    return secrets.token_hex(8)


def _remove_tree(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        journal.warning("could not remove %s", path)
