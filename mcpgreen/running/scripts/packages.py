"""Find out which packages a Python script needs, and which environment has them.

A script names its packages in a header (PEP 723); for all others, `requirements.txt` of the project names them.
`mcpgreen deps install` makes an environment for each set of packages, in the project. Its name is a digest of the set,
so the environment of a changed set is missing.

Rule: nothing is installed or run here.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from mcpgreen.files.regular_files import without_waiting
from mcpgreen.running.scripts.shebang import is_python, program_of
from mcpgreen.running.system import stamp_of_file

PLACE = ".environments"
READY = "mcpgreen-ready"  # a file that is written when everything is installed
REQUIREMENTS = "requirements.txt"
REMEDY = "run `mcpgreen deps install` in the project"
MAX_BYTES = 131_072  # that are read of a file
MAX_CHARS = 500  # of packages, in a message
_HEADER = re.compile(r"(?m)^# /// script[ \t]*\n((?:^#(?: .*)?\n)+?)^# ///[ \t]*$")
_STRING = r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'"
_TOKEN = re.compile(rf"#[^\n]*\n|({_STRING})")
_DEPENDENCIES = re.compile(rf"(?m)^dependencies[ \t]*=[ \t]*\[((?:[\s,]|#[^\n]*\n|{_STRING})*)\]")
_PYTHON = re.compile(rf"(?m)^requires-python[ \t]*=[ \t]*({_STRING})")


class Packages(NamedTuple):
    """A set of packages. `names` is empty if they are those of `requirements.txt`, or cannot be read. `lack` says what
    is missing if they are not installed."""

    source: str  # the file that names them
    names: tuple[str, ...]
    python: str  # the versions of Python that they need, as in >=3.11; empty for any
    place: str
    lack: str = "packages that are not installed yet"
    is_optional: bool = False  # the script may have them from elsewhere

    @property
    def interpreter(self) -> str:
        return f"{self.place}/bin/python"

    @property
    def are_installed(self) -> bool:
        return os.path.exists(f"{self.place}/{READY}")


def packages_of(root: str, path: str) -> Packages | None:
    """Return the packages of a script of this project; None if it needs none, or gets them in another way."""
    return _packages_in(root, path, stamp_of_file(path), stamp_of_file(f"{root}/{REQUIREMENTS}"))


@lru_cache(1000)
def _packages_in(root: str, path: str, *stamps: object) -> Packages | None:
    script, source = _start_of(path), f"{root}/{REQUIREMENTS}"
    if not is_python(path, script) or program_of(path, script) == "uv":  # its first line lets uv do it
        return None
    text = _start_of(source).decode("utf-8", "replace")
    found, parts = Packages(source, (), "", "", is_optional=True), re.findall(r"(?m)^\s*[^#\s].*", text)
    if header := _HEADER.search(script.decode("utf-8", "replace").replace("\r\n", "\n")):
        fields = re.sub(r"(?m)^# ?", "", header[1])
        listed, python = _DEPENDENCIES.search(fields), _PYTHON.search(fields)
        names = tuple(found[1][1:-1] for found in _TOKEN.finditer(listed[1]) if found[1]) if listed else ()
        if (listed is None and "dependencies" in fields) or not all(name[:1].isalnum() for name in names):
            return Packages(path, (), "", "", 'a header like dependencies = ["NAME", "OTHER>=2"]')
        lack = f"{found.lack}: {', '.join(names)[:MAX_CHARS]}"
        found = Packages(path, names, python[1][1:-1] if python else "", "", lack)
        parts = [found.python, *names] if names else []
    from hashlib import sha256  # takes a millisecond, and few projects need it

    digest = sha256("\0".join(parts).encode()).hexdigest()[:16]
    return found._replace(place=f"{root}/{PLACE}/{digest}") if parts else None


def _start_of(path: str) -> bytes:
    with suppress(OSError), open(path, "rb", opener=without_waiting) as file:
        return file.read(MAX_BYTES)
    return b""
