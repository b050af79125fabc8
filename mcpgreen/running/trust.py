"""Find out which users could have changed a file that we are about to run. One rule for all scripts and hooks.

The file, and every directory from it up to the project's, must belong to us or to root, and no other user may write to
it (see `files/writers.py`): a user who can write to a directory can replace the file after the check. A sticky one
does not help, because all users can create missing files in it. If a setting names a place outside the project, the
directories count up to that place. Links are followed step by step, and the directory in which each lies counts too.

Knows no policy: what becomes of a file that cannot be trusted is for the caller to decide. A look costs an `lstat` a
step.

Rule: imported before the first answer when a project has variables of its own, so it imports `os` and leaves only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from mcpgreen.files.writers import others_may_write
from mcpgreen.text.uris import is_within

# Root can change everything anyway, so what belongs to root is as safe as what belongs to us.
TRUSTED_OWNERS = (os.geteuid(), 0)
# A service may get another user id at each start (systemd: DynamicUser), so its files should belong to root.
LASTING_OWNER = TRUSTED_OWNERS[0] if TRUSTED_OWNERS[0] in range(1000, 60_000) else "root"
MOST_NAMED = 3
NOT_RUN = "not run because"
MEND = "run mcpgreen validate --fix"
MOST_LINKS = 40  # as the kernel counts


def told_together(paths: Sequence[str]) -> str:
    """Say of all these files at once that others may write to them. The remedy is `MEND`."""
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    count = f"{len(paths)} files are" if len(paths) > 1 else "1 file is"
    return f"{count} {NOT_RUN} other users can write to them or their folders: {', '.join(paths[:MOST_NAMED])}{more}"


class Ground:
    """A directory with things that are executed, in a project or, by a setting, elsewhere. Both are real paths; `named`
    is how the directory is called, if there is a link on the way to it."""

    def __init__(
        self, directory: str, *, root: str, named: str | None = None, lstat: Callable[[str], os.stat_result] = os.lstat
    ) -> None:
        self.directory = directory
        self._lstat = lstat
        self._root = root
        self._named = named if named is not None and is_within(named, root) else directory

    def problem_with(self, path: str, *, may_be_link: bool = True) -> str | None:
        """Return why the file, which lies in the directory, must not be executed: the end of a sentence that begins
        with it. None if nothing speaks against it. Raises FileNotFoundError if it is not there."""
        return self._problem(path, is_wanted=stat.S_ISREG, kind="regular file", may_be_link=may_be_link)

    def problem_with_hook(self, path: str) -> str | None:
        """Like `problem_with`, for a file of a fixed name, which needs no link and should exist."""
        try:
            return self.problem_with(path, may_be_link=False)
        except FileNotFoundError as error:
            return f"it cannot be examined: {error.strerror}"

    def problem_with_directory(self, path: str | None = None) -> str | None:
        """Like `problem_with`, for the directory, or one in it: why nothing there will be executed."""
        try:
            return self._problem(path or self.directory, is_wanted=stat.S_ISDIR, kind="directory")
        except FileNotFoundError:
            return None  # nor is there anything in it

    def open_places(self, path: str) -> Iterator[str]:
        """Yield what others may write to, on the way to the file and the file itself, if it is our own in the project:
        `MEND` changes its mode."""
        with suppress(OSError):
            for place, status, _ in self._steps(self._named + path[len(self.directory) :]):
                if not stat.S_ISLNK(status.st_mode) and self._is_own(place, status) and others_may_write(place, status):
                    yield place

    def _is_own(self, place: str, status: os.stat_result) -> bool:
        return status.st_uid == TRUSTED_OWNERS[0] and is_within(place, self._root)

    def _problem(
        self, path: str, *, is_wanted: Callable[[int], bool], kind: str, may_be_link: bool = True
    ) -> str | None:
        if not is_within(path, self.directory):
            path = os.path.realpath(path)
        place, mode = self._root, stat.S_IFDIR
        try:
            for place, status, counts in self._steps(self._named + path[len(self.directory) :]):
                mode = status.st_mode
                if not counts:
                    continue
                if status.st_uid not in TRUSTED_OWNERS:
                    return self._fault(place, mode, "belongs to another user", f"chown {LASTING_OWNER}")
                if stat.S_ISLNK(mode):
                    if place == path and not may_be_link:
                        return "it is a symbolic link"
                elif others_may_write(place, status):
                    remedy = MEND if self._is_own(place, status) else "chmod go-w"
                    return self._fault(place, mode, "can be written to by others", remedy)
        except FileNotFoundError:
            raise
        except OSError as error:
            return f"it cannot be examined: {error.strerror}"
        if not is_within(place, self.directory):
            return f"it points outside {os.path.basename(self.directory)}/"
        return None if is_wanted(mode) else f"it is not a {kind}"

    def _steps(self, path: str) -> Iterator[tuple[str, os.stat_result, bool]]:
        """Yield all that decides where a path leads, from the project on: directories, links, and what is there at
        last; and whether it matters which users can write to it."""
        place = self._root
        yield place, self._lstat(place), True
        if not is_within(path, place):
            place = self.directory
            yield place, self._lstat(place), True
        names = path[len(place) :].split("/")
        names.reverse()
        links, may_be_out = 0, False
        while names:
            name = names.pop()
            if name in ("", "."):
                continue
            if name == "..":
                place = os.path.dirname(place)
                may_be_out = True
                continue
            here = f"{place}/{name}" if place != "/" else f"/{name}"
            status = self._lstat(here)
            if not stat.S_ISLNK(status.st_mode):
                place = here
                yield here, status, not may_be_out or self._counts(here)
                continue
            links, may_be_out = links + 1, True
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if not self._counts(place):
                # Outside, as in /tmp, it is enough that no other user can rename the link.
                outside = self._lstat(place)
                yield place, outside, not outside.st_mode & stat.S_ISVTX
            yield here, status, True
            target = os.readlink(here)
            if target.startswith("/"):
                # The directories above the project are none of our business.
                place = self._root if is_within(target, self._root) else "/"
                target = target[len(place) :]
            names += target.split("/")[::-1]

    def _counts(self, place: str) -> bool:
        return is_within(place, self._root) or is_within(place, self.directory)

    def _fault(self, place: str, mode: int, fault: str, remedy: str) -> str:
        if place == self._root:
            return f"the project directory {fault} ({remedy if remedy == MEND else f'{remedy} .'})"
        if not self._counts(place):
            return "it is reached through a link outside the project that others can change"
        base = self._root if is_within(place, self._root) else os.path.dirname(self.directory)
        shown = place[len(base.rstrip("/")) + 1 :]
        subject = f"its directory {shown}" if stat.S_ISDIR(mode) else "it"
        if remedy == MEND:
            return f"{subject} {fault} ({remedy})"
        import shlex  # takes milliseconds, and is rarely needed

        return f"{subject} {fault} ({remedy} {shlex.quote(f'./{shown}' if shown.startswith('-') else shown)})"
