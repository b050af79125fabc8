"""`mcpgreen bundle`: pack the project and its runtime into one file (MCPB 0.3), which clients install with a click.

A bundle is laid out as a vendored project: `server/` is the project, `server/.mcpgreen/` the runtime. It is put
together in a temporary directory and validated there by its own runtime, so a packed bundle is known to start.

Settings are from the command line, `mcpb.conf` and `server.d/server.meta.json`, in this order. `mcpb.conf` looks like
shell, but it is data: it is split as a shell would do it, and nothing is expanded or run.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import read_meta_file
from mcpgreen.cli import children
from mcpgreen.cli.commands import Options
from mcpgreen.cli.deps import needed_packages
from mcpgreen.cli.making.drafts import filled
from mcpgreen.cli.opening import open_named
from mcpgreen.cli.output import say, step, tell
from mcpgreen.cli.sharing.vendor import DIRECTORY, copy_file, copy_runtime, files_below
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.confined import Private
from mcpgreen.files.regular_files import content_of, replacing
from mcpgreen.project.project import Project
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.running.scripts.packages import REQUIREMENTS
from mcpgreen.settings.settings import Settings
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

PLATFORMS = {"linux": ("linux",), "darwin": ("darwin",), "all": ("darwin", "linux")}
# The served parts of a project, besides the directories that settings name.
PARTS = (
    *("tools", "resources", "prompts", "completions", "providers", "ui", "skills"),
    *("server.d", "lib", "config", "VERSION", REQUIREMENTS),
)
NEVER = ("__pycache__", ".git", ".DS_Store", "Thumbs.db", DIRECTORY)
LEFTOVER = re.compile(r"(?is:.*~|#.*#|.*\.(?:sw[nop]|bak|orig|rej|tmp))")  # copies, which may hold what was removed
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip, so that the same content makes the same entry
CHECK_SECS = 120
MAX_OUTPUT_BYTES = 16 << 20

ENTRY_POINT = f"server/{DIRECTORY}/start.py"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}")
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
ICONS = ("icon.png", "icon.svg")
MAX_PROMPT_BYTES = 65_536
CONF = "mcpb.conf"
PREFIX = "MCPB_"
MAX_BYTES = 1 << 20
# The keys of mcpb.conf that have an equivalent field in server.meta.json, and those without one.
_SHARED = """NAME VERSION DESCRIPTION REPOSITORY LICENSE KEYWORDS DOCUMENTATION SUPPORT PRIVACY_POLICIES
    LONG_DESCRIPTION_FILE USER_CONFIG_ENV_MAP USER_CONFIG_ARGS_MAP"""
_OWN = """AUTHOR_NAME AUTHOR_EMAIL AUTHOR_URL INCLUDE STATIC USER_CONFIG_FILE COMPAT_CLAUDE_DESKTOP RUNTIME_PYTHON
    RUNTIME_NODE"""
FIELD_OF = {key: key.lower() for key in _SHARED.split()} | {"HOMEPAGE": "websiteUrl"} | dict.fromkeys(_OWN.split(), "")


def run(options: Options) -> int:
    """Return 0 when the bundle is made. Raises ProjectError and UsageError."""
    platforms = _platforms(options["--platform"])
    project, server, environ = open_named(options, logs_notes=True)
    settings = BundleSettings(project)
    manifest = manifest_of(settings, server, name=options["--name"], version=options["--version"], platforms=platforms)
    require_valid(manifest)  # before anything is copied
    with tempfile.TemporaryDirectory(prefix="mcpgreen-bundle-") as place:
        staged = os.path.join(place, "server")
        with step("Copying the project, mcpgreen and its packages"):
            needed = needed_packages(project, server, environ)
            about = {"executables": _stage(settings, staged), "needs_packages": bool(needed)}
            copy_runtime(os.path.join(staged, DIRECTORY), project=os.pardir, about=about)
        if not os.path.isfile(os.path.join(staged, manifest.get("icon", ""))):
            manifest.pop("icon", None)  # it is not in the bundle
        with step("Checking the copy"):
            _validate(staged)
            manifest |= _collect_lists(project, staged, keeps=is_static(settings))
        require_valid(manifest)
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        Path(place, "manifest.json").write_text(text, encoding="utf-8")
        if icon := manifest.get("icon"):
            copy_file(os.path.join(staged, icon), os.path.join(place, icon))
        if options["--validate"]:
            say(f"{manifest['name']} {manifest['version']} can be bundled\n")
            return 0
        output = os.path.abspath(options["--output"] or os.curdir)
        made = os.path.join(output, f"{manifest['name']}-{manifest['version']}.mcpb")
        with nullcontext() if options["--verbose"] else step("Packing"):
            count = _pack(place, made, is_verbose=options["--verbose"])
    say(f"Created {made} ({count} files, {os.path.getsize(made) / 1e6:.1f} MB)\n")
    return 0


def require_valid(manifest: Json) -> None:
    """Check a manifest against the published schema. Raises ProjectError."""
    schema = json.loads(filled("sharing/mcpb-manifest.schema.json"))
    if problems := compile_schema(schema, noun="member").problems(manifest):
        raise ProjectError("manifest.json", "; ".join(problems))


def _platforms(wanted: str | None) -> tuple[str, ...]:
    if wanted is None:
        return (sys.platform,)
    if wanted == "win32":
        raise ProjectError("--platform win32", "mcpgreen does not run on Windows; in WSL, use linux")
    if wanted not in PLATFORMS:
        raise UsageError(f"--platform {wanted} is not a known platform; choose {', '.join(PLATFORMS)}.")
    return PLATFORMS[wanted]


def _stage(settings: BundleSettings, staged: str) -> list[str]:
    """Copy what is served, and return the executable files, because unpacking a bundle may lose their modes."""
    project = settings.project
    homes = (project.tools_dir, project.resources_dir, project.prompts_dir, project.providers_dir)
    parts = [project.shown(place) for place in (*homes, project.ui_dir, project.skills_dir, project.server_dir)]
    included = [project.shown(settings.inside(name, "INCLUDE")) for name in settings.words("INCLUDE")]
    for part in (part for part in parts if os.path.isabs(part)):
        journal.warning("%s is outside the project, so it is left out", part)
    files: dict[str, str] = {}
    for part in dict.fromkeys([*PARTS, *parts, *ICONS, *included]):
        source = os.path.join(project.root, part)
        if os.path.isabs(part) or not os.path.exists(source):
            if part in included:
                raise ProjectError(part, "MCPB_INCLUDE names it, but it does not exist")
            continue
        files |= _judged_below(project, source)
    for path, reason in files.items():
        if reason:
            journal.warning("%s is left out: %s", project.shown(path), reason)
    taken = [project.shown(path) for path, reason in files.items() if not reason]
    os.makedirs(staged)
    executables = [path for path in taken if copy_file(os.path.join(project.root, path), os.path.join(staged, path))]
    for name in ("server.d/env", "server.d/env.sh"):
        if os.path.exists(os.path.join(staged, name)):
            journal.warning("%s goes into the bundle, where anyone can read it; it must not contain secrets", name)
    return executables


def _judged_below(project: Project, source: str) -> dict[str, str]:
    """Return each file with the reason to leave it out, or "" to pack it. A link is judged by its target."""
    real_path = os.path.realpath(source)
    hidden = Private(project.root)
    if not is_within(real_path, project.root):
        return {source: "it is outside the project"}
    if hidden.covers(source) or hidden.covers(real_path):
        return {source: "it is hidden, or leads to something hidden"}
    if LEFTOVER.fullmatch(os.path.basename(source)):
        return {source: "it is a backup, or was left by an editor"}
    if os.path.isfile(source):
        return {source: ""}
    if not os.path.isdir(source) or os.path.islink(source):
        return {source: "it is not a file, or is a link to a directory"}
    judged: dict[str, str] = {}
    for name in sorted(os.listdir(source)):
        if name not in NEVER and not name.endswith(".pyc"):
            judged |= _judged_below(project, os.path.join(source, name))
    return judged


def _validate(staged: str) -> None:
    """Let the runtime of the bundle validate it. Raises ProjectError."""
    done = _run_bundled(staged, "validate", "--json")
    try:
        messages = json.loads(done.stdout)["messages"]
    except ValueError:
        raise ProjectError(staged, f"the bundle does not start: {done.stderr.strip()[-500:]}") from None
    # Packages are installed when the bundle is started.
    if errors := [each["message"] for each in messages if each["level"] == "error" and each["code"] != "packages"]:
        raise ProjectError("validate", "; ".join(errors))


def _collect_lists(project: Project, staged: str, *, keeps: bool) -> Json:
    """Make the lists for the manifest from registry files, which stay in the bundle if it `keeps` them."""
    _run_bundled(staged, "scan", "--quiet")
    registry = os.path.join(staged, project.shown(project.registry_dir))
    tools = [
        _given({"name": each["name"], "description": each.get("description")}) for each in _items(registry, "tools")
    ]
    prompts = list(_prompts(registry, os.path.join(staged, project.shown(project.prompts_dir))))
    for name in os.listdir(registry):
        path = os.path.join(registry, name)
        with open(path, "rb") as file:
            # URIs of files contain the directory, which differs for each user.
            is_bound = os.path.realpath(staged).encode() in file.read()
            os.fchmod(file.fileno(), 0o644)
        if is_bound or not keeps:
            os.unlink(path)
    return _given({"tools": tools, "prompts": prompts})


def _run_bundled(staged: str, *command: str) -> children.Ended:
    words = [sys.executable, "-I", os.path.join(staged, DIRECTORY, "start.py"), *command]
    env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
    return children.run(words, env=env, cwd=staged, stderr=subprocess.PIPE, secs=CHECK_SECS, max_bytes=MAX_OUTPUT_BYTES)


def _pack(place: str, made: str, *, is_verbose: bool) -> int:
    """Write the archive with the manifest first, and return the number of files."""
    paths = sorted(files_below(place), key=lambda path: path != "manifest.json")
    try:
        os.makedirs(os.path.dirname(made), exist_ok=True)
        with replacing(made, mode=0o644) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in paths:
                entry = zipfile.ZipInfo(path, EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = os.stat(os.path.join(place, path)).st_mode << 16
                archive.writestr(entry, Path(place, path).read_bytes())
                if is_verbose:
                    tell(f"{path}\n")
    except OSError as error:
        raise ProjectError(made, f"it cannot be written: {error.strerror}") from error
    return len(paths)


def manifest_of(
    settings: BundleSettings, server: Settings, *, name: str | None, version: str | None, platforms: Sequence[str]
) -> Json:
    """Return the manifest without the lists of tools and prompts. Raises ProjectError."""
    info = settings.project.server_info()
    name = name or settings.text("NAME") or info["name"]
    version = version or settings.text("VERSION") or info["version"]
    if not NAME.fullmatch(name):
        raise ProjectError(name, "this is not a valid bundle name; choose one from A-Z a-z 0-9 . _ - with --name")
    if not VERSION.fullmatch(version):
        raise ProjectError(version, "this is not a valid bundle version; choose one such as 1.0.0 with --version")
    runtimes = {"python": settings.text("RUNTIME_PYTHON") or ">=3.10", "node": settings.text("RUNTIME_NODE")}
    client = settings.text("COMPAT_CLAUDE_DESKTOP")
    repository = settings.repository()
    user_config = settings.user_config()
    start = _start(settings, server, user_config)
    return _given(
        {
            "manifest_version": "0.3",
            "name": name,
            "display_name": info["title"],
            "version": version,
            "description": settings.text("DESCRIPTION") or f"{info['title']}, an MCP server",
            "long_description": settings.file_text(settings.text("LONG_DESCRIPTION_FILE")),
            "author": settings.author(),
            "repository": {"type": "git", "url": repository} if repository else None,
            "homepage": settings.text("HOMEPAGE"),
            "documentation": settings.text("DOCUMENTATION"),
            "support": settings.text("SUPPORT"),
            "icon": next((icon for icon in ICONS if os.path.isfile(os.path.join(settings.project.root, icon))), ""),
            "server": {"type": "python", "entry_point": ENTRY_POINT, "mcp_config": start},
            "keywords": settings.words("KEYWORDS"),
            "license": settings.text("LICENSE"),
            "privacy_policies": settings.words("PRIVACY_POLICIES"),
            "compatibility": _given(
                {"claude_desktop": client, "platforms": list(platforms), "runtimes": _given(runtimes)}
            ),
            "user_config": user_config,
        }
    )


def is_static(settings: BundleSettings) -> bool:
    """Tell whether the bundle serves the items that it was made with, without scanning again."""
    return settings.text("STATIC").lower() not in ("false", "0", "no", "off")


def _start(settings: BundleSettings, server: Settings, user_config: Json) -> Json:
    """Return the command line and the variables, with placeholders for the choices of the user."""
    variables = settings.pairs("USER_CONFIG_ENV_MAP")
    arguments = settings.words("USER_CONFIG_ARGS_MAP")
    for key in (*variables, *arguments):
        if key not in user_config:
            raise ProjectError(key, "it is mapped, but user_config does not define it")
    env = {variable: f"${{user_config.{key}}}" for key, variable in variables.items()}
    if is_static(settings):
        env["MCPGREEN_STATIC_REGISTRY"] = "true"
    # Scripts get few variables, but the choices of the user are meant for them.
    for kind in ("tool", "provider"):
        if env and variables and server.origin(f"{kind}_env_mode") == "default":
            env[f"MCPGREEN_{kind.upper()}_ENV_MODE"] = "allowlist"
            env[f"MCPGREEN_{kind.upper()}_ENV_ALLOWLIST"] = ",".join(variables.values())
    chosen = ["--", *(f"${{user_config.{key}}}" for key in arguments)] if arguments else []
    return _given({"command": "python3", "args": ["-I", f"${{__dirname}}/{ENTRY_POINT}", *chosen], "env": env})


def _prompts(registry: str, prompts_dir: str) -> Iterator[Json]:
    """Yield the prompts that are text files, because the manifest has to contain their text."""
    for entry in _items(registry, "prompts"):
        path = os.path.join(prompts_dir, str(entry.get("path", "")))
        if not path.endswith((".txt", ".md")) or not os.path.isfile(path) or os.path.getsize(path) > MAX_PROMPT_BYTES:
            continue
        text = PLACEHOLDER.sub(r"${arguments.\1}", Path(path).read_text(encoding="utf-8", errors="replace"))
        names = [argument["name"] for argument in entry.get("arguments") or ()]
        yield _given({"name": entry["name"], "description": entry.get("description"), "arguments": names, "text": text})


def _items(registry: str, kind: str) -> list[Json]:
    items: list[Json] = json.loads(Path(registry, f"{kind}.json").read_bytes())["items"]
    return items


def _given(fields: Json) -> Json:
    """Return the fields that are not empty."""
    return {name: value for name, value in fields.items() if value}


class BundleSettings:
    """The settings of one project. Raises ProjectError for unusable ones."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._conf = _read_conf(os.path.join(project.root, CONF))
        meta_file = os.path.join(project.server_dir, "server.meta.json")
        self._meta = read_meta_file(meta_file) if os.path.exists(meta_file) else {}

    def value(self, key: str) -> Any:
        """Return the value in mcpb.conf, else in server.meta.json, else None."""
        if key in self._conf:
            return self._conf[key]
        return self._meta.get(FIELD_OF[key]) if FIELD_OF[key] else None

    def text(self, key: str) -> str:
        value = self.value(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ProjectError(key, f"{FIELD_OF[key]} in server.meta.json must be a string")
        return value.strip()

    def words(self, key: str) -> list[str]:
        """Return a list: the words of a string, or the members of an array."""
        value = self.value(key)
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
        return self.text(key).replace(",", " ").split()

    def pairs(self, key: str) -> dict[str, str]:
        """`one=ONE two=TWO`, or an object."""
        value = self.value(key)
        if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
            return value
        pairs = {}
        for word in self.words(key):
            name, equals, meant = word.partition("=")
            if not (name and equals and meant):
                raise ProjectError(CONF, f"{PREFIX}{key}: {word} is not name=VARIABLE")
            pairs[name] = meant
        return pairs

    def repository(self) -> str:
        value = self.value("REPOSITORY")
        if isinstance(value, dict):
            value = value.get("url")
        return value.strip() if isinstance(value, str) else ""

    def author(self) -> dict[str, str]:
        """Return the author, which the manifest requires. If nothing names one, it is the current user."""
        given = self._meta.get("author")
        author = {"name": given} if isinstance(given, str) else dict(given) if isinstance(given, dict) else {}
        for key in ("name", "email", "url"):
            if text := self.text(f"AUTHOR_{key.upper()}"):
                author[key] = text
        if not author.get("name"):
            author["name"] = _user_name(self.project.root)
            journal.warning("the author is %s; set MCPB_AUTHOR_NAME in %s to change that", author["name"], CONF)
        return {key: author[key] for key in ("name", "email", "url") if author.get(key)}

    def user_config(self) -> Json:
        """Return the options that clients ask the user for. Title and description default to the name."""
        name = self.text("USER_CONFIG_FILE")
        options = read_meta_file(self._file(name)) if name else self._meta.get("user_config") or {}
        if not isinstance(options, dict) or not all(isinstance(option, dict) for option in options.values()):
            raise ProjectError(name or "user_config", "it must be an object whose values are objects")
        return {
            key: {"title": key, "description": option.get("title", key), **option} for key, option in options.items()
        }

    def inside(self, name: str, key: str) -> str:
        """Return the path of a file or directory. Raises ProjectError if it is outside of the project."""
        path = os.path.realpath(os.path.join(self.project.root, name))
        if os.path.isabs(name) or ".." in name.split("/") or not path.startswith(self.project.root + os.sep):
            raise ProjectError(CONF, f"{PREFIX}{key}: {name} must be a path inside the project")
        return path

    def file_text(self, name: str) -> str:
        """Read a file of the project; return "" without a name. Raises ProjectError if there is no such file."""
        return _text(self._file(name)) if name else ""

    def _file(self, name: str) -> str:
        path = self.inside(name, "…_FILE")
        if not os.path.exists(path):
            raise ProjectError(name, "there is no such file in the project")
        return path


def _read_conf(path: str) -> dict[str, str]:
    try:
        words = shlex.split(_text(path) if os.path.exists(path) else "", comments=True)
    except ValueError as error:
        raise ProjectError(path, f"it cannot be read: {error}") from error
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        key = name.removeprefix(PREFIX)
        if equals and key != name and key in FIELD_OF:
            found[key] = value
            if "$" in value or "`" in value:
                journal.warning("%s: %s is used literally; nothing in it is expanded or run", CONF, name)
        elif word != "export":
            journal.warning("%s: %s is ignored: it is not a bundle setting", CONF, name[:80])
    return found


def _text(path: str) -> str:
    try:
        return content_of(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProjectError(path, f"it cannot be read: {error}") from error


def _user_name(root: str) -> str:
    """Return the name of the current user, as git or the system has it."""
    command = ["git", "-C", root, "config", "--get", "user.name"]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
        if name := done.stdout.decode("utf-8", "replace").strip():
            return name
    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        return "unknown"
    return user.pw_gecos.partition(",")[0].strip() or user.pw_name
