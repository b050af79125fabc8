"""Parse Python scripts without running them, and report syntax errors and imports as JSON.

A program of its own, for the interpreter that would run the scripts: it knows its syntax best, and may be brought down
by a script without taking `validate` with it. So it imports only the standard library, as Python 3.7 has it.

Rule: a script is parsed, never compiled to code that could be run, and never imported.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import site
import sys
from collections.abc import Iterator
from typing import Any

MAX_CHARS = 300
SDK = "mcp_tool"


def reading_of(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), path)
    except SyntaxError as error:
        return {"fault": [error.lineno or 1, error.offset, str(error.msg)[:MAX_CHARS]]}
    except ValueError as error:  # a NUL
        return {"fault": [1, None, str(error)[:MAX_CHARS]]}
    except (MemoryError, RecursionError):
        return {"fault": [1, None, "it is nested too deeply"]}
    except OSError:
        return {}
    return {"imports": list(_imports(tree)), "knows_sdk_at": _knows_sdk_at(tree), "needs": list(_needs(tree))}


def _imports(tree: ast.Module) -> Iterator[list[Any]]:
    """Line, column and names of each import of the SDK that has to succeed."""
    tried = {id(each) for node in ast.walk(tree) if isinstance(node, ast.Try) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in tried:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == SDK and not node.level:
            yield [node.lineno, node.col_offset + 1, [each.name for each in node.names]]
        elif isinstance(node, ast.Import) and any(each.name == SDK for each in node.names):
            yield [node.lineno, node.col_offset + 1, []]


def _needs(tree: ast.Module) -> Iterator[list[Any]]:
    """Line, column and first name of each module without which the script ends at once, and whether it is found."""
    for node in tree.body:
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            first = name.partition(".")[0]  # only this, because Python imports it to look for the second
            yield [node.lineno, node.col_offset + 1, first, _is_found(first)]


def _is_found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return True


def _knows_sdk_at(tree: ast.Module) -> int:
    """Return the first line that affects where modules are found; 0 for none."""
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "path" and getattr(node.value, "id", "") == "sys")
        or (isinstance(node, ast.alias) and node.name in ("path", "site") and hasattr(node, "lineno"))
        or (isinstance(node, ast.Attribute) and node.attr == "addsitedir")
    ]
    return min(lines) if lines else 0


if __name__ == "__main__":
    sys.path.append(site.getusersitepackages())
    for name in sys.argv[1:]:
        sys.stdout.write(json.dumps(reading_of(name)) + "\n")
        sys.stdout.flush()
