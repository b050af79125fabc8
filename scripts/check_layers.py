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
from collections.abc import Collection, Iterator
from pathlib import Path

PACKAGE = "mcpgreen"

# From bottom to top: a module imports from its own layer or from one before it. Modules directly in the package are
# leaves, as those in these packages are, apart from those that have a place of their own here.
LEAVES = ("text", "files", "settings", "logs")
ORDER = (
    "leaves",
    "protocol",
    "running",
    "project",
    "catalog",
    "providers",
    "links",
    "tasks",
    "fleet",
    "features",
    "engine",
    "transports",
    "cli",
    "testing",
    "first_answer",
    "__main__",
)
WITHOUT_GEVENT = ("leaves", "protocol", "project", "catalog")
# These stand alone: the SDK is imported by tools, which know nothing of the server.
ALONE = ("sdk",)
# Data that happens to end in .py.
NOT_OURS = ("default_project",)

# Runs before the rest of the server is imported, so it may use less than its place in the order would allow.
NARROW = {"first_answer": ("leaves", "protocol", "project.project")}

# Parts of a package (its sub-packages, and the modules beside them) must not import each other in a circle, apart from
# these, which are to be mended.
CIRCLES = {"cli": {"clients", "making"}}

# Who may import what; names of modules inside the package, or paths for files outside.
OWNERS = {
    "ujson": ("text.jsontext",),
    "jsonschema": ("protocol.schemas.validator",),
    "jsonschema_specifications": ("protocol.schemas.validator",),
    "referencing": ("protocol.schemas.validator",),
    "yaml": ("catalog.descriptions.yaml_text",),
    "docopt": ("cli.main",),
    "jwt": ("transports.http.oauth.keys", "transports.http.oauth.resource_server"),
    "cryptography": ("tasks.store", "tasks.sqlite_store"),
    "celery": ("fleet.bell",),
    "kombu": ("fleet.bell",),
    "redis": ("fleet.address",),
    "sqlite3": ("tasks.store", "tasks.sqlite_store"),
    "jq": ("sdk.json_tool",),
    "gevent.subprocess": ("running.processes.process",),
    "gevent.monkey": ("__main__", "cli.fleet.commands", "tests/conftest.py"),
    "logging": (),
    # It follows links. A file that is open has `os.fchmod`.
    "os.chmod": ("files.regular_files",),
}
# The only rule that also holds for tests and scripts: patching twice, or late, breaks what others rely on.
EVERYWHERE = ("gevent.monkey",)
NAMED_EVERYWHERE = [name.rpartition(".")[2] for name in EVERYWHERE]

MAY_NAME_STDOUT = ("transports.stdio", "__main__", "first_answer")
STDOUT_IS_FREE_IN = ("cli", *ALONE)

MAX_LINES = 500
MAX_MODULES = 16  # of a package, so that a place is found by names alone
EXCUSE = "Over 500 lines because"

DATE = re.compile(r"20\d\d-\d\d-\d\d")
MAY_NAME_DATES = ("protocol.revisions",)


# By package, part, and the part that it imports: where it does so.
Edges = dict[str, dict[str, dict[str, str]]]


class Source:
    """One file: its text as a tree, and what it is called in the tables."""

    def __init__(self, path: Path, root: Path) -> None:
        self.shown = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, filename=self.shown)
        self.nodes = list(ast.walk(self.tree))  # each check looks through them
        self.is_package = path.name == "__init__.py"
        self.is_ours = self.shown.startswith(f"{PACKAGE}/")
        self.module = self.shown.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.name = self.module.removeprefix(f"{PACKAGE}.") if self.is_ours else self.shown
        self.packages = {each.name for each in (root / PACKAGE).iterdir() if each.is_dir()}
        self.layer = self.layer_of(self.module)

    def layer_of(self, module: str) -> str:
        """The layer of `mcpgreen.protocol.messages.error` is protocol, that of `mcpgreen.errors.RpcError` leaves."""
        top = module.partition(".")[2].partition(".")[0]
        return top if (top in self.packages and top not in LEAVES) or top in ORDER else "leaves"

    def finding(self, line: int, sentence: str) -> str:
        return f"{self.shown}:{line}: {sentence}"


def crowded_packages(root: Path) -> Iterator[str]:
    for package in sorted({path.parent for path in (root / PACKAGE).rglob("*.py")}):
        modules = [path for path in package.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MAX_MODULES:
            shown = package.relative_to(root).as_posix()
            yield f"{shown}: {len(modules)} modules are too many to find one in; {MAX_MODULES} are enough. Make a room."


def findings(root: Path) -> Iterator[str]:
    yield from crowded_packages(root)
    edges: Edges = {}
    everything = (wrong_imports, foreign_imports, needless_length, dates, stdout)
    for directory, checks in ((PACKAGE, everything), ("tests", (foreign_imports,)), ("scripts", (foreign_imports,))):
        for path in sorted((root / directory).rglob("*.py")):
            if path.relative_to(root / directory).parts[0] in NOT_OURS or "node_modules" in path.parts:
                continue
            if directory != PACKAGE and not any(name.encode() in path.read_bytes() for name in NAMED_EVERYWHERE):
                continue  # most files, and to understand one takes a hundred times as long as to look through it
            try:
                source = Source(path, root)
            except SyntaxError as error:
                yield f"{path.relative_to(root).as_posix()}:{error.lineno}: This is not Python: {error.msg}."
                continue
            for check in checks:
                yield from check(source)
            if directory == PACKAGE:
                note_edges(source, edges)
    yield from circles(root, edges)


def note_edges(source: Source, edges: Edges) -> None:
    """Note which parts of the packages around this module it imports. What only type checkers read does not count."""
    for_types = {
        id(inner)
        for node in source.nodes
        if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    parts = source.module.split(".")
    for line, name in imports(source, leave_out=for_types):
        others = name.split(".")
        for depth in range(1, min(len(parts), len(others))):
            if parts[:depth] == others[:depth] and parts[depth] != others[depth]:
                package = edges.setdefault(".".join(parts[1:depth]), {})
                package.setdefault(parts[depth], {}).setdefault(others[depth], f"{source.shown}:{line}")


def circles(root: Path, edges: Edges) -> Iterator[str]:
    """Imports among the parts of a package that lead back to where they began. The layers of the whole package have an
    order of their own, and a package without sub-packages may be of one piece."""
    for package, imported in sorted(edges.items()):
        directory = root / PACKAGE / package.replace(".", "/")
        if not package or not any(each.is_dir() and any(each.glob("*.py")) for each in directory.iterdir()):
            continue
        for part, others in sorted(imported.items()):
            for other, place in sorted(others.items()):
                if part in reachable(other, imported) and not {part, other} <= CIRCLES.get(package, set()):
                    yield f"{place}: {part} and {other} of {package} import each other in a circle."


def reachable(start: str, edges: dict[str, dict[str, str]]) -> set[str]:
    """Parts that can be reached from this one by imports."""
    found: set[str] = set()
    pending = [start]
    while pending:
        new = edges.get(pending.pop(), {}).keys() - found
        found |= new
        pending += new
    return found


def wrong_imports(source: Source) -> Iterator[str]:
    """Imports within the package, from the wrong direction."""
    layer = source.layer
    if layer not in ORDER and layer not in ALONE:
        yield source.finding(1, f"{layer} has no place in ORDER; give it one.")
        return
    for line, name in imports(source):
        if not is_within(name, PACKAGE):
            continue
        target = source.layer_of(name)
        short = target if target == "leaves" else name.removeprefix(f"{PACKAGE}.")
        if layer in ALONE:
            if target != layer:
                yield source.finding(line, f"{layer} stands alone and must not import {name}.")
        elif layer in NARROW and not any(is_within(short, allowed) for allowed in NARROW[layer]):
            yield source.finding(line, f"{layer} may import only {', '.join(NARROW[layer])}, not {name}.")
        elif target not in ORDER:
            yield source.finding(line, f"{layer} must not import {name}, which is no part of the server.")
        elif ORDER.index(target) > ORDER.index(layer):
            yield source.finding(line, f"{layer} must not import {name}: {target} is above it.")


def foreign_imports(source: Source) -> Iterator[str]:
    """Imports of modules that belong to somebody else."""
    for line, name in imports(source):
        for owned, owners in OWNERS.items():
            if is_within(name, owned) and source.name not in owners and (source.is_ours or owned in EVERYWHERE):
                place = f"only in {' and '.join(owners)}" if owners else "nowhere"
                yield source.finding(line, f"{owned} may be imported {place}.")
        if source.is_ours and is_within(name, "gevent") and source.layer in WITHOUT_GEVENT:
            yield source.finding(line, f"{source.layer} must not import gevent.")


def needless_length(source: Source) -> Iterator[str]:
    lines = source.text.count("\n")
    if lines > MAX_LINES and EXCUSE not in (ast.get_docstring(source.tree) or ""):
        yield source.finding(
            MAX_LINES, f'The module has {lines} lines; split it, or say in its docstring "{EXCUSE} ...".'
        )


def dates(source: Source) -> Iterator[str]:
    if source.name in MAY_NAME_DATES:
        return
    exempt = set(docstrings(source))
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or node in exempt:
            continue
        text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if isinstance(text, str) and DATE.search(text):
            yield source.finding(node.lineno, "A date stands here; only protocol/revisions.py knows revisions by date.")


def stdout(source: Source) -> Iterator[str]:
    if source.name in MAY_NAME_STDOUT or source.layer in STDOUT_IS_FREE_IN:
        return
    attributes = (node for node in source.nodes if isinstance(node, ast.Attribute))
    for line, name in (*imports(source), *((node.lineno, dotted(node)) for node in attributes)):
        if name in ("sys.stdout", "sys.__stdout__"):
            yield source.finding(line, f"{name} belongs to the transport; use the journal or the sink.")


def imports(source: Source, *, leave_out: Collection[int] = ()) -> Iterator[tuple[int, str]]:
    """Every import by its full dotted name: `from a import b` is `a.b`, whether b is a module or not. Nodes can be left
    out by their identity."""
    for node in source.nodes:
        if id(node) in leave_out:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(source, node)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and dotted(node.func) in ("__import__", "importlib.import_module"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value)
        elif isinstance(node, ast.Attribute) and dotted(node) in OWNERS:
            yield node.lineno, dotted(node)  # `import gevent` may be enough to reach `gevent.monkey`


def absolute(source: Source, node: ast.ImportFrom) -> str:
    """The module that a `from ... import` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    parents = parts[: len(parts) - node.level + (1 if source.is_package else 0)]
    return ".".join((*parents, *([node.module] if node.module else [])))


def dotted(node: ast.AST) -> str:
    """`a.b.c` for such an expression, empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def docstrings(source: Source) -> Iterator[ast.AST]:
    for node in source.nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield body[0].value


def is_within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(findings(root))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
