"""What is of the standard library."""

from __future__ import annotations

import os
import sys

LIBRARY = os.path.dirname(os.__file__) + os.sep


def is_file_of_the_library(file: str | None) -> bool:
    """Where no script keeps anything."""
    return not file or (file.startswith(LIBRARY) and "-packages" + os.sep not in file)


def is_in_the_library(top: str) -> bool:
    """Whether a module, or package, of this name is."""
    if sys.version_info >= (3, 10):
        return top in sys.stdlib_module_names
    from importlib.util import find_spec

    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and (spec.origin in ("built-in", "frozen") or is_file_of_the_library(spec.origin))
