"""A copy of mcpgreen and all packages that it needs, for a place where neither is installed.

Taken from the environment that runs us, so nothing is fetched and the versions are those that work here. Compiled parts
fit this kind of Python only, which `vendor.json` says; `start.py`, which begins there, sees to it that they are used by
no other.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from mcpgreen import PACKAGE_DIR, __version__
from mcpgreen.cli.sharing import start
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import bundled_project_root

DIRECTORY = ".mcpgreen"
ABOUT = "vendor.json"
OURS = "mcpgreen"
# What nobody needs who runs a package. Licences are in its dist-info, which is kept.
SUPERFLUOUS = (".pyc", ".pyo", ".c", ".h", ".cpp", ".hpp", ".pyx", ".pxd")
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;(.*))?", re.DOTALL)
OTHER_SYSTEM = re.compile(r"""sys_platform\s*==\s*["'](\w+)["']""")


def copy_runtime(target: str, *, project: str, about: dict[str, object] | None = None) -> dict[str, object]:
    """Fill the new directory `target`. `project` is where the project will be, seen from there. What `vendor.json`
    says, with `about` added."""
    library = os.path.join(target, "lib")
    packages = {}
    for distribution in needed_distributions():
        packages[distribution.metadata["Name"]] = distribution.version
        for source, place in _files_of(distribution):
            copy_file(source, os.path.join(library, place))
    ignored = shutil.ignore_patterns("__pycache__", "default_project")
    shutil.copytree(PACKAGE_DIR, os.path.join(library, OURS), ignore=ignored)
    example = shutil.ignore_patterns("__pycache__", ".registry")
    shutil.copytree(bundled_project_root(), os.path.join(library, OURS, "default_project"), ignore=example)
    _copy_own_metadata(library)
    copy_file(start.__file__, os.path.join(target, "start.py"))
    fields = {
        "version": __version__,
        "sha256": checksum(target),
        "vendored_from": f"{OURS} {__version__}",
        "vendored_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": "{}.{}".format(*sys.version_info),
        "kind": start.kind_of_this_python(),
        "packages": packages,
        "project": project,
        **(about or {}),
    }
    Path(target, ABOUT).write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    return fields


def checksum(directory: str) -> str:
    """Of the names and contents of all files that were copied; what Python compiles later does not count."""
    digest = hashlib.sha256()
    for path in files_below(directory):
        if path == ABOUT:
            continue
        content = Path(directory, path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def needed_distributions() -> list[metadata.Distribution]:
    """All that is installed of what we need, and of what that needs. Raises ProjectError where something is missing."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(_requirements(_own_distribution()))
    while waiting:
        name, is_optional = waiting.pop()
        if name in found:
            continue
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if is_optional:
                continue
            raise ProjectError(name, "this package is needed and not installed; pip install it") from None
        found[name] = distribution
        waiting += _requirements(distribution)
    return [found[name] for name in sorted(found)]


def _own_distribution() -> metadata.Distribution:
    try:
        return metadata.distribution(OURS)
    except metadata.PackageNotFoundError:
        reason = "it is not installed as a package here, so what it needs is not known; pip install it, or make run"
        raise ProjectError(OURS, reason) from None


def _requirements(distribution: metadata.Distribution) -> Iterator[tuple[str, bool]]:
    """Normalized names, and whether one may be missing because it is not for every machine."""
    for text in distribution.requires or ():
        matched = REQUIREMENT.fullmatch(text)
        if matched is None:
            continue
        marker = matched[2] or ""
        elsewhere = any(system != sys.platform for system in OTHER_SYSTEM.findall(marker))
        if "extra" in marker or (elsewhere and " or " not in marker):
            continue
        yield re.sub(r"[-_.]+", "-", matched[1]).lower(), bool(marker)


def _files_of(distribution: metadata.Distribution) -> Iterator[tuple[str, str]]:
    """Each file of a package that is worth a copy, and its place below the library."""
    if distribution.files is None:
        raise ProjectError(distribution.metadata["Name"], "which files this package has is not known; pip install it")
    for file in distribution.files:
        is_outside = ".." in file.parts or file.is_absolute()  # programs in bin/, which are not needed
        is_superfluous = file.suffix in SUPERFLUOUS or {"__pycache__", "tests"} & set(file.parts[:-1])
        if not is_outside and not is_superfluous and os.path.isfile(source := str(distribution.locate_file(file))):
            yield source, file.as_posix()


def _copy_own_metadata(library: str) -> None:
    """So that the copy knows what it needs, and can be copied itself. Other files may name places of this machine."""
    text = _own_distribution().read_text("METADATA") or _own_distribution().read_text("PKG-INFO") or ""
    place = Path(library, f"{OURS}-{__version__}.dist-info")
    place.mkdir()
    (place / "METADATA").write_text(text, encoding="utf-8")


def copy_file(source: str, target: str) -> bool:
    """Whether it can be executed; nobody but us may write to the copy."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)
    is_executable = bool(os.stat(source).st_mode & 0o111)
    os.chmod(target, 0o755 if is_executable else 0o644)
    return is_executable


def files_below(directory: str) -> list[str]:
    """Their paths from there, in one order everywhere, without what Python has compiled."""
    found = (path for path in Path(directory).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(directory).as_posix() for path in found)
