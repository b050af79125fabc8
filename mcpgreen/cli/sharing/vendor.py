"""`mcpgreen vendor`: copy mcpgreen and its packages into the project, with a script that serves it.

The copy is taken from the running environment, so nothing is downloaded, and the versions are known to work. Compiled
parts fit one kind of Python, which `vendor.json` names; `start.py`, the entry point of the copy, checks that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

from mcpgreen import PACKAGE_DIR, __version__
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import filled
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import ask, can_ask, say, step, tell
from mcpgreen.cli.sharing import start
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import without_waiting
from mcpgreen.project.project import bundled_project_root
from mcpgreen.text.json_types import Json

LAUNCHER = "run-server.sh"
DIRECTORY = ".mcpgreen"
ABOUT = "vendor.json"
OURS = "mcpgreen"
# Not needed to run a package. Licences are in its dist-info, which is kept.
SUPERFLUOUS = (".pyc", ".pyo", ".c", ".h", ".cpp", ".hpp", ".pyx", ".pxd")
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;(.*))?", re.DOTALL)
OTHER_SYSTEM = re.compile(r"""sys_platform\s*==\s*["'](\w+)["']""")


def run(options: Options) -> int:
    project, _, _ = open_named(options)
    output = os.path.abspath(options["--output"] or project.root)
    place, launcher = os.path.join(output, DIRECTORY), os.path.join(output, LAUNCHER)
    if options["--verify"]:
        return _verify(place)
    if options["--dry-run"]:
        packages = " ".join(distribution.metadata["Name"] for distribution in needed_distributions())
        say(f"Would write {place} and {launcher}, with {packages}\n")
        return 0
    existing = [path for path in (place, launcher) if os.path.lexists(path)]
    is_wanted = options["--upgrade"] or (
        existing and can_ask() and ask(f"{existing[0]} exists. Replace it", "no", ("yes", "no")) == "yes"
    )
    if existing and not is_wanted:
        raise ProjectError(existing[0], "it already exists; replace it with --upgrade")
    with step("Copying mcpgreen and its packages"):
        fields = _write(output, project_root=project.root)
    if options["--verbose"]:
        for name, version in fields["packages"].items():
            tell(f"{name} {version}\n")
    say(f"Vendored mcpgreen {fields['version']} to {place}\nServe with {launcher}\n")
    return 0


def _write(output: str, *, project_root: str) -> Json:
    """Write the copy and the script. An existing copy can be used until the new one is complete."""
    hidden = os.path.join(output, f"{DIRECTORY}-{secrets.token_hex(8)}")
    fresh, old, script = (os.path.join(hidden, name) for name in ("fresh", "old", LAUNCHER))
    place = os.path.join(output, DIRECTORY)
    try:
        os.makedirs(fresh, 0o755)
        fields = copy_runtime(fresh, project=os.path.relpath(project_root, place))
        with open(script, "x", encoding="utf-8") as file:
            file.write(filled("sharing/run-server.sh"))
            os.fchmod(file.fileno(), 0o755)
        with suppress(FileNotFoundError):
            os.rename(place, old)
        try:
            os.rename(fresh, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.rename(old, place)
            raise
        os.replace(script, os.path.join(output, LAUNCHER))
    except OSError as error:
        raise ProjectError(error.filename or output, f"it cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return fields


def _verify(place: str) -> int:
    try:
        about = json.loads(Path(place, ABOUT).read_bytes())
        expected, version = about["sha256"], about["version"]
    except FileNotFoundError:
        raise ProjectError(place, "there is no copy here; create one with mcpgreen vendor") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"it cannot be used ({error}); replace it with vendor --upgrade"
        raise ProjectError(os.path.join(place, ABOUT), reason) from error
    if checksum(place) != expected:
        raise ProjectError(place, "it was changed after it was copied; replace it with vendor --upgrade")
    say(f"Verified mcpgreen {version} at {place}\n")
    return 0


def copy_runtime(target: str, *, project: str, about: Json | None = None) -> Json:
    """Fill the new directory `target`, and return the fields of its `vendor.json`, with `about` added.

    `project` is the path from there to the project."""
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
    # METADATA says what the copy needs. Other files may name paths of this machine.
    text = _own_distribution().read_text("METADATA") or _own_distribution().read_text("PKG-INFO") or ""
    about_us = Path(library, f"{OURS}-{__version__}.dist-info")
    about_us.mkdir()
    (about_us / "METADATA").write_text(text, encoding="utf-8")
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
    """Return the checksum of the names and contents of all files, without compiled ones."""
    digest = hashlib.sha256()
    for path in files_below(directory):
        if path == ABOUT:
            continue
        content = Path(directory, path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def needed_distributions() -> list[metadata.Distribution]:
    """Return all packages that we need, directly or indirectly. Raises ProjectError if one is missing."""
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
            raise ProjectError(name, "this package is required, but not installed; run pip install") from None
        found[name] = distribution
        waiting += _requirements(distribution)
    return [found[name] for name in sorted(found)]


def _own_distribution() -> metadata.Distribution:
    try:
        return metadata.distribution(OURS)
    except metadata.PackageNotFoundError:
        reason = "it is not installed as a package, so its requirements are unknown; run pip install, or make run"
        raise ProjectError(OURS, reason) from None


def _requirements(distribution: metadata.Distribution) -> Iterator[tuple[str, bool]]:
    """Yield the normalized names of required packages, and whether each may be missing on this machine."""
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
    """Yield the files of a package to copy, with their places below the library."""
    if distribution.files is None:
        raise ProjectError(distribution.metadata["Name"], "its files are unknown; reinstall it with pip")
    for file in distribution.files:
        is_outside = ".." in file.parts or file.is_absolute()  # programs in bin/, which are not needed
        is_superfluous = file.suffix in SUPERFLUOUS or {"__pycache__", "tests"} & set(file.parts[:-1])
        if not is_outside and not is_superfluous and os.path.isfile(source := str(distribution.locate_file(file))):
            yield source, file.as_posix()


def copy_file(source: str, target: str) -> bool:
    """Copy a file so that only the user may write to the copy. Return True if it is executable."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(source, "rb", opener=without_waiting) as original, open(target, "wb") as copy:
        shutil.copyfileobj(original, copy)
        is_executable = bool(os.fstat(original.fileno()).st_mode & 0o111)
        os.fchmod(copy.fileno(), 0o755 if is_executable else 0o644)
    return is_executable


def files_below(directory: str) -> list[str]:
    """Return the sorted relative paths of all files, without compiled ones."""
    found = (path for path in Path(directory).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(directory).as_posix() for path in found)
