"""`mcpgreen bundle`: the project and all that serves it as one file, which clients install with a click.

A bundle is laid out as a vendored project: `server/` is the project, `server/.mcpgreen/` the runtime. It is put
together in a temporary directory, and its own runtime looks at it there, so that what is packed is known to start.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext

from mcpgreen import journal
from mcpgreen.cli.commands import Options
from mcpgreen.cli.making.drafts import replacing
from mcpgreen.cli.opening import opened
from mcpgreen.cli.output import step
from mcpgreen.cli.sharing.bundle_settings import BundleSettings
from mcpgreen.cli.sharing.manifest import ICONS, is_static, listed, manifest_of, problems_of
from mcpgreen.cli.sharing.runtime import DIRECTORY, copy_file, copy_runtime, files_below
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

PLATFORMS = {"linux": ("linux",), "darwin": ("darwin",), "all": ("darwin", "linux")}
# What of a project is served, besides the directories that settings name.
PARTS = ("tools", "resources", "prompts", "completions", "providers", "ui", "server.d", "lib", "config", "VERSION")
NEVER = ("__pycache__", ".git", ".DS_Store", "Thumbs.db", DIRECTORY)
EARLIEST = (1980, 1, 1, 0, 0, 0)  # of what a zip can say; the same content makes the same entry
CHECK_SECS = 120


def run(options: Options) -> int:
    """0 when the bundle is there, 1 when something is wrong with project or settings."""
    platforms = _platforms(options["--platform"])
    project, server, _ = opened(options, tells_notes=True)
    settings = BundleSettings(project)
    manifest = manifest_of(settings, server, name=options["--name"], version=options["--version"], platforms=platforms)
    _require_valid(manifest)  # before anything is copied
    with tempfile.TemporaryDirectory(prefix="mcpgreen-bundle-") as place:
        staged = os.path.join(place, "server")
        with step("Copying the project, mcpgreen and its packages"):
            executables = _stage(settings, staged)
            copy_runtime(os.path.join(staged, DIRECTORY), project=os.pardir, about={"executables": executables})
        with step("Checking the copy"):
            _require_sound(staged)
            manifest |= _registered(project, staged, keeps=is_static(settings))
        _require_valid(manifest)
        with open(os.path.join(place, "manifest.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        if manifest.get("icon"):
            shutil.copyfile(os.path.join(project.root, manifest["icon"]), os.path.join(place, manifest["icon"]))
        if options["--validate"]:
            sys.stdout.write(f"{manifest['name']} {manifest['version']} can be bundled\n")
            return 0
        output = os.path.abspath(options["--output"] or os.curdir)
        made = os.path.join(output, f"{manifest['name']}-{manifest['version']}.mcpb")
        with nullcontext() if options["--verbose"] else step("Packing"):
            count = _pack(place, made, is_verbose=options["--verbose"])
    sys.stdout.write(f"Created {made} ({count} files, {os.path.getsize(made) / 1e6:.1f} MB)\n")
    return 0


def _require_valid(manifest: Json) -> None:
    problems = problems_of(manifest)
    if problems:
        raise ProjectError("manifest.json", "; ".join(problems))


def _platforms(wanted: str | None) -> tuple[str, ...]:
    if wanted is None:
        return (sys.platform,)
    if wanted == "win32":
        raise ProjectError("--platform win32", "mcpgreen does not run on Windows itself; in WSL it is linux")
    if wanted not in PLATFORMS:
        raise UsageError(f"--platform {wanted} is not known; choose {', '.join(PLATFORMS)}.")
    return PLATFORMS[wanted]


def _stage(settings: BundleSettings, staged: str) -> list[str]:
    """Copy what is served. Which of the files can be executed: whoever unpacks a bundle may lose that."""
    project = settings.project
    directories = (project.tools_dir, project.resources_dir, project.prompts_dir, project.providers_dir)
    parts = [project.shown(place) for place in (*directories, project.ui_dir, project.server_dir)]
    included = [project.shown(settings.inside(name, "INCLUDE")) for name in settings.words("INCLUDE")]
    for part in (part for part in parts if os.path.isabs(part)):
        journal.warning("%s lies outside the project and is left out", part)
    executables = []
    os.makedirs(staged)
    for part in dict.fromkeys([*PARTS, *parts, *ICONS, *included]):
        source = os.path.join(project.root, part)
        if os.path.isabs(part) or not os.path.exists(source):
            if part in included:
                raise ProjectError(part, "MCPB_INCLUDE names it, and it does not exist")
            continue
        for path in _files_below(project, source):
            if copy_file(path, os.path.join(staged, project.shown(path))):
                executables.append(project.shown(path))
    if os.path.exists(os.path.join(staged, "server.d", "env")):
        journal.warning("server.d/env goes into the bundle, for everybody to read: it must not hold secrets")
    return executables


def _files_below(project: Project, source: str) -> Iterator[str]:
    """Regular files, also behind links as long as these stay in the project."""
    if not is_within(os.path.realpath(source), project.root):
        journal.warning("%s leads out of the project and is left out", project.shown(source))
    elif os.path.isfile(source):
        yield source
    elif os.path.isdir(source) and not os.path.islink(source):
        for name in sorted(os.listdir(source)):
            if name not in NEVER and not name.endswith(".pyc"):
                yield from _files_below(project, os.path.join(source, name))


def _require_sound(staged: str) -> None:
    """Let the runtime of the bundle say what it would not serve."""
    done = _by_its_runtime(staged, "validate", "--json")
    try:
        messages = json.loads(done.stdout)["messages"]
    except ValueError:
        raise ProjectError(staged, f"the bundle does not start: {done.stderr.strip()[-500:]}") from None
    errors = [message["message"] for message in messages if message["level"] == "error"]
    if errors:
        raise ProjectError("validate", "; ".join(errors))


def _registered(project: Project, staged: str, *, keeps: bool) -> Json:
    """The lists for the manifest. The files that they come from stay in the bundle if it `keeps` them."""
    _by_its_runtime(staged, "scan", "--quiet")
    registry = os.path.join(staged, project.shown(project.registry_dir))
    lists = listed(registry, os.path.join(staged, project.shown(project.prompts_dir)))
    for name in os.listdir(registry):
        path = os.path.join(registry, name)
        with open(path, "rb") as file:
            # Addresses of files hold the place where they lie, which is another one for each user.
            is_bound = os.path.realpath(staged).encode() in file.read()
        if is_bound or not keeps:
            os.unlink(path)
        else:
            os.chmod(path, 0o644)
    return lists


def _by_its_runtime(staged: str, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-I", os.path.join(staged, DIRECTORY, "start.py"), *command],
        cwd=staged,
        env={**env, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=CHECK_SECS,
        check=False,
    )


def _pack(place: str, made: str, *, is_verbose: bool) -> int:
    """Write the archive, the manifest first; the number of its files."""
    paths = sorted(files_below(place), key=lambda path: path != "manifest.json")
    try:
        os.makedirs(os.path.dirname(made), exist_ok=True)
        with replacing(made, mode=0o644) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                entry = zipfile.ZipInfo(path, EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = os.stat(os.path.join(place, path)).st_mode << 16
                with open(os.path.join(place, path), "rb") as content:
                    archive.writestr(entry, content.read())
                if is_verbose:
                    sys.stderr.write(f"{path}\n")
    except OSError as error:
        raise ProjectError(made, f"it cannot be written: {error.strerror}") from error
    return len(paths)
