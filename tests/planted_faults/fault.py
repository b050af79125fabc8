"""What a planted fault is, and whether it still fits the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Fault(NamedTuple):
    """A mistake that somebody could make: in `file` the text `old`, which stands there once, becomes `new`. At least
    one of `tests` (files, or tests in them) has to fail then."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def fault(name: str, file: str, old: str, new: str, *tests: str) -> Fault:
    return Fault(name, file, old, new, tests)


def why_stale(fault: Fault, root: Path) -> str | None:
    """Why it cannot be planted, or its tests cannot be run; None if nothing speaks against it."""
    if not (root / fault.file).is_file():
        return f"there is no {fault.file}"
    count = (root / fault.file).read_text(encoding="utf-8").count(fault.old)
    if count != 1:
        return f"{fault.file} has {fault.old!r} {count} times instead of once"
    for test in fault.tests:
        file, _, name = test.partition("::")
        if not (root / file).exists():
            return f"there is no {file}"
        function = name.partition("[")[0]
        if function and not re.search(rf"^def {function}\(", (root / file).read_text(encoding="utf-8"), re.MULTILINE):
            return f"{file} has no {function}"
    return None
