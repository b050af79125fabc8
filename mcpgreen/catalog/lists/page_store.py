"""Encoded pages of an earlier start, in a directory of the user: for the first list of the next one.

A file holds the pages of one source of one project, for every revision, and the digest of what they depend on: times,
sizes, modes and inodes of the project's files. Whoever reads it looks at the disk first, and takes the pages if nothing
is different. What else they depend on (version, settings, how the server calls itself) decides the file's name.

Not in `.registry/`: a project that somebody else wrote may come with any file. Here only the user can have written, and
who could have written is asked as it is for tools. Nothing needs these files: one that is missing, strange, damaged or
cannot be written costs some milliseconds.

Rule: `read` is on the way to the first list. It imports leaves only, and says no wherever something is odd.
"""

from __future__ import annotations

import binascii
import errno
import marshal
import os
import sys

from mcpgreen import PACKAGE_DIR, __version__
from mcpgreen.files.regular_files import existing_file
from mcpgreen.running.policy.trust import Ground
from mcpgreen.text import jsontext
from mcpgreen.text.records import NamedTuple
from mcpgreen.text.uris import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mcpgreen.project.project import Project

FORMAT = 1
MAX_FILE_BYTES = 4 << 20
MAX_FILES = 64
DIRECTORY = "mcpgreen-lists"  # in the user's cache directory, where the launcher has its environments in mcpgreen/


class KeptListing(NamedTuple):
    """What is known of a list, and where its pages are: by revision, first and last item, place, length, checksum."""

    kind: str
    hash: str
    total: int
    generated_at: str
    pages: dict[str, list[list[int]]]


class KeptPages(NamedTuple):
    """What a file holds."""

    fingerprint: str
    listings: dict[str, KeptListing]
    bodies: bytes

    def page(self, listing: KeptListing, revision: str, start: int, stop: int) -> bytes | None:
        for first, last, place, length, checksum in listing.pages.get(revision, ()):
            if (first, last) == (start, stop):
                body = self.bodies[place : place + length]
                return body if len(body) == length and binascii.crc32(body) == checksum else None
        return None


class PageStore:
    """Of one project and one set of settings."""

    def __init__(self, base: str, key: list[Any]) -> None:
        """`base` is the user's cache directory, a real path."""
        self.base = base
        self.directory = os.path.join(base, DIRECTORY)
        self._key = key
        self._ground = Ground(self.directory, root=base)

    def path_of(self, source: str) -> str:
        name = jsontext.digest_of_chunks([jsontext.dumps([FORMAT, source, *self._key])])
        return os.path.join(self.directory, name)

    def make_directory(self) -> None:
        """Raises OSError, also where others could put something in our way, or we are a guest: root in the home of
        somebody else would leave directories there that their owner could not use."""
        for place in (self.base, self.directory):
            os.makedirs(place, mode=0o700, exist_ok=True)
            problem = self._ground.problem_with_directory(place)
            if problem:
                raise PermissionError(errno.EACCES, problem, place)

    def read(self, source: str) -> KeptPages | None:
        path = self.path_of(source)
        try:
            if self._ground.problem_with(path, may_be_link=False):
                return None
            with open(existing_file(path), "rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
            head, _, bodies = content.partition(b"\n")
            if len(content) > MAX_FILE_BYTES:
                return None
            fields = jsontext.loads(head)
            listings = {name: KeptListing(name, *rest) for name, rest in fields["listings"].items()}
            return KeptPages(fields["fingerprint"], listings, bodies)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None


def digest_of(fingerprint: tuple[Any, ...]) -> str:
    # As marshal writes it, which takes a tenth of the time of a text. Of the older versions equal values are equal.
    return jsontext.digest_of_chunks([marshal.dumps(fingerprint, 2)])


def page_store(environ: Mapping[str, str], project: Project, *, depends_on: list[Any]) -> PageStore | None:
    """Where `environ` says that the user's caches are; None if it does not, or if they are part of the project. Not by
    the project's own variables: who writes a project does not decide where we look."""
    base = environ.get("XDG_CACHE_HOME") or ""
    if not os.path.isabs(base):
        home = environ.get("HOME") or ""
        base = os.path.join(home, ".cache")
        if not os.path.isabs(home):
            return None
    base = os.path.realpath(base)
    directories = [project.tools_dir, project.resources_dir, project.prompts_dir, project.ui_dir]
    directories += [project.root, project.server_dir, project.registry_dir]
    if any(is_within(base, directory) for directory in directories):
        return None
    key = [__version__, _stamp_of_sources(), sys.version, *directories, *depends_on]
    return PageStore(base, key)


def _stamp_of_sources() -> list[Any]:
    """What differs when another mcpgreen reads the descriptions, also one of the same version."""
    status = os.stat(PACKAGE_DIR)
    stamp: list[Any] = [PACKAGE_DIR, status.st_mtime_ns, status.st_ino]
    if os.path.exists(os.path.join(os.path.dirname(PACKAGE_DIR), ".git")):
        # A checkout, in which somebody may be at work.
        for place, directories, names in os.walk(PACKAGE_DIR):
            directories[:] = [each for each in directories if each in SOURCES_IN or place != PACKAGE_DIR]
            paths = (os.path.join(place, name) for name in names if name.endswith(".py"))
            stamp.append(max((os.stat(path).st_mtime_ns for path in paths), default=0))
    return stamp


SOURCES_IN = ("catalog", "files", "project", "protocol", "running", "text")
