"""Check what may import what, and a few more rules of the house.

    python scripts/check_layers.py [ROOT]

Reads the sources below ROOT (this repository by default) without importing them, prints each finding as
`file:line: sentence` and exits 1 if there is one. An import inside a function counts like any other.

The rules are the tables below; code only looks them up. A new package needs a place in `ORDER`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "mcpgreen"

# From bottom to top: a module imports from its own layer or from one before it. Modules directly in the package are
# leaves, apart from those that have a place of their own here.
ORDER = (
    "leaves",
    "protocol",
    "running",
    "catalog",
    "providers",
    "features",
    "engine",
    "transports",
    "cli",
    "greeting",
    "__main__",
)
WITHOUT_GEVENT = ("leaves", "protocol", "catalog")
# These stand alone: the SDK is imported by tools, which know nothing of the server.
ALONE = ("sdk",)
# Data that happens to end in .py.
NOT_OURS = ("default_project",)

# Runs before the rest of the server is imported, so it may use less than its place in the order would allow.
NARROW = {"greeting": ("leaves", "protocol", "catalog.project")}

# Who may import what; names of modules inside the package, or paths for files outside.
OWNERS = {
    "ujson": ("jsontext",),
    "jsonschema": ("protocol.schemas",),
    "jsonschema_specifications": ("protocol.schemas",),
    "referencing": ("protocol.schemas",),
    "yaml": ("catalog.metadata",),
    "docopt": ("cli.main",),
    "gevent.subprocess": ("running.process",),
    "gevent.monkey": ("__main__", "tests/conftest.py"),
    "logging": (),
}
# The only rule that also holds for tests and scripts: patching twice, or late, breaks what others rely on.
EVERYWHERE = ("gevent.monkey",)

MAY_NAME_STDOUT = ("transports.stdio", "__main__", "greeting")
STDOUT_IS_FREE_IN = ("cli", *ALONE)

MAX_LINES = 350
EXCUSE = "Over 350 lines because"

DATE = re.compile(r"20\d\d-\d\d-\d\d")
MAY_NAME_DATES = ("protocol.revisions",)


class Source:
    """One file: its text as a tree, and what it is called in the tables."""

    def __init__(self, path: Path, root: Path) -> None:
        self.shown = path.relative_to(root).as_posix()
        self.is_ours = self.shown.startswith(f"{PACKAGE}/")
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, filename=self.shown)
        self.is_package = path.name == "__init__.py"
        dotted = self.shown.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.module = dotted
        self.name = dotted.removeprefix(f"{PACKAGE}.") if self.is_ours else self.shown

    def finding(self, line: int, sentence: str) -> str:
        return f"{self.shown}:{line}: {sentence}"


def findings(root: Path) -> Iterator[str]:
    for path in sorted((root / PACKAGE).rglob("*.py")):
        if path.relative_to(root / PACKAGE).parts[0] in NOT_OURS:
            continue
        source = Source(path, root)
        for check in (wrong_imports, foreign_imports, needless_length, dates, stdout):
            yield from check(source)
    for directory in ("tests", "scripts"):
        for path in sorted((root / directory).rglob("*.py")):
            yield from foreign_imports(Source(path, root))


def wrong_imports(source: Source) -> Iterator[str]:
    """Imports within the package, from the wrong direction."""
    layer = layer_of(source.module)
    if layer not in ORDER and layer not in ALONE:
        yield source.finding(1, f"{layer} has no place in ORDER; give it one.")
        return
    for line, name in imports(source):
        if name.split(".")[0] != PACKAGE:
            continue
        target = layer_of(name)
        if layer in ALONE:
            yield source.finding(line, f"{layer} stands alone and must not import {name}.")
        elif layer in NARROW and not any(is_within(own_name(name), allowed) for allowed in NARROW[layer]):
            yield source.finding(line, f"{layer} may import only {', '.join(NARROW[layer])}, not {name}.")
        elif target not in ORDER:
            yield source.finding(line, f"{name} is not meant to be imported by the server.")
        elif ORDER.index(target) > ORDER.index(layer):
            yield source.finding(line, f"{layer} must not import {name}: {target} is above it.")


def foreign_imports(source: Source) -> Iterator[str]:
    """Imports of modules that belong to somebody else."""
    for line, name in imports(source):
        for owned, owners in OWNERS.items():
            if not is_within(name, owned) or source.name in owners:
                continue
            if source.is_ours or owned in EVERYWHERE:
                yield source.finding(line, f"{owned} may be imported {_only_in(owners)}.")
        if source.is_ours and is_within(name, "gevent") and layer_of(source.module) in WITHOUT_GEVENT:
            yield source.finding(line, f"{layer_of(source.module)} must not import gevent.")


def needless_length(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MAX_LINES and EXCUSE not in (ast.get_docstring(source.tree) or ""):
        yield source.finding(
            MAX_LINES, f'The module has {lines} lines; split it, or say in its docstring "{EXCUSE} ...".'
        )


def dates(source: Source) -> Iterator[str]:
    if source.name in MAY_NAME_DATES:
        return
    docstrings = set(_docstrings(source.tree))
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Constant) or node in docstrings:
            continue
        text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if isinstance(text, str) and DATE.search(text):
            yield source.finding(node.lineno, "A date stands here; only protocol/revisions.py knows revisions by date.")


def stdout(source: Source) -> Iterator[str]:
    if source.name in MAY_NAME_STDOUT or layer_of(source.module) in STDOUT_IS_FREE_IN:
        return
    for line, name in names(source):
        if name in ("sys.stdout", "sys.__stdout__"):
            yield source.finding(line, f"{name} belongs to the transport; use the journal or the sink.")


def imports(source: Source) -> Iterator[tuple[int, str]]:
    """Every import as its full dotted name: `from a import b` is `a.b`, whether b is a module or not."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(source, node)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            if _dotted(node.func) in ("__import__", "import_module", "importlib.import_module"):
                yield node.lineno, str(node.args[0].value)
        elif isinstance(node, ast.Attribute) and (_dotted(node) or "").startswith("gevent."):
            yield node.lineno, _dotted(node) or ""


def names(source: Source) -> Iterator[tuple[int, str]]:
    """Attributes by their dotted names, and what is imported out of modules."""
    yield from imports(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, _dotted(node) or ""


def layer_of(module: str) -> str:
    """The layer of `mcpgreen.protocol.shapes.fit_tool` is protocol, that of `mcpgreen.errors` leaves."""
    parts = module.split(".")
    if len(parts) < 2:
        return "leaves"
    is_package = len(parts) > 2 or parts[1] in ORDER or parts[1] in ALONE
    return parts[1] if is_package and not _is_leaf(parts[1]) else "leaves"


def own_name(module: str) -> str:
    """The name as it stands in NARROW: a module of a layer, or `leaves` and what follows."""
    layer = layer_of(module)
    return "leaves" if layer == "leaves" else module.removeprefix(f"{PACKAGE}.")


def is_within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
