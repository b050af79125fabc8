"""The project on disk: where its root and directories are, and how the server introduces itself.

It does not read tools/, resources/ and prompts/: `catalog` does. It creates nothing, so that a project on a read-only
disk works.

Rule: the first answer waits for this module, so it imports only leaf modules at the top.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property
from typing import TYPE_CHECKING

from mcpgreen import PACKAGE_DIR, journal
from mcpgreen.errors import ProjectError, Untrusted
from mcpgreen.files.regular_files import content_of
from mcpgreen.settings.rows import ALIAS_PREFIX, OUR_PREFIX
from mcpgreen.settings.settings import load
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

if TYPE_CHECKING:
    from mcpgreen.files.confined import Private
    from mcpgreen.project.roots import Roots
    from mcpgreen.protocol.token import RemoteToken
    from mcpgreen.running.hooks import Sourced
    from mcpgreen.running.trust import Ground
    from mcpgreen.settings.settings import Settings

MARKER = os.path.join("server.d", "server.meta.json")
NO_PROJECT = "no folder has a server.d/, or a script or description in tools/, resources/ or prompts/"
REMEDY = "Create one with `mcpgreen new NAME`, run `mcpgreen init` in this folder, or name yours with --project-root"

# Attribute and setting -> directory below the root when the setting says nothing.
DEFAULT_DIRECTORIES = {
    "tools_dir": "tools",
    "resources_dir": "resources",
    "prompts_dir": "prompts",
    "providers_dir": "providers",
    "ui_dir": "ui",
    "skills_dir": "skills",
    "server_dir": "server.d",
    "registry_dir": ".registry",
}

MAX_TEXT_BYTES = 1 << 20  # of each file that says something about the server
SETTING_PREFIXES = (OUR_PREFIX, ALIAS_PREFIX, "MCP_")
TEXT_FIELDS = ("name", "title", "version", "description", "websiteUrl")


class Project:
    """The paths of a project: absolute and without symbolic links. The root exists, the directories need not."""

    tools_dir: str
    resources_dir: str
    prompts_dir: str
    providers_dir: str
    ui_dir: str
    skills_dir: str
    server_dir: str
    registry_dir: str

    def __init__(self, root: str, directories: Mapping[str, str]) -> None:
        """`directories` are settings by name (`tools_dir`, ...), relative to the root."""
        self.skills_as_prompts = False
        self.complaints: list[tuple[str, str]] = []  # about its variables: the file, and what is wrong with it
        self.root = os.path.realpath(root)
        # The name of the server, unless its description has one.
        self.default_name = os.path.basename(self.root) or "mcp-server"
        self.place(directories)

    def place(self, directories: Mapping[str, str]) -> None:
        """Set its directories from the settings of the same names."""
        self._named: dict[str, str] = {}  # by real path: the names of the directories before links were resolved
        for attribute, name in DEFAULT_DIRECTORIES.items():
            named = os.path.join(self.root, os.path.expanduser(directories.get(attribute) or name))
            place = os.path.realpath(named)
            setattr(self, attribute, place)
            self._named[place] = named

    def __repr__(self) -> str:
        return f"<Project {self.root}>"

    def shown(self, path: str) -> str:
        """Return the path for messages: relative to the root if it lies below the root."""
        return path.removeprefix(self.root.rstrip(os.sep) + os.sep)

    def server_file(self, name: str) -> str:
        """Return the path of a file of server.d/."""
        return os.path.join(self.server_dir, name)

    @property
    def has_skills(self) -> bool:
        return os.path.isdir(self.skills_dir)

    @cached_property
    def private(self) -> Private:
        """The files of the project that are never served."""
        from mcpgreen.files.confined import Private

        return Private(self.root, self.server_dir)

    def ground(self, directory: str, lstat: Callable[[str], os.stat_result] = os.lstat) -> Ground:
        """Return one of the directories, for checks of the files in it that are executed."""
        from mcpgreen.running.trust import Ground

        return Ground(directory, root=self.root, named=self._named.get(directory), lstat=lstat)

    def require_trusted(self, path: str) -> None:
        """Raises Untrusted if others could have written this file of server.d/, which is run or decides what is run."""
        problem = self.ground(self.server_dir).problem_with_hook(path)
        if problem:
            raise Untrusted(path, f"it is not trusted: {problem}")

    def server_name(self) -> str:
        """Return the name of the server, also in the URIs of its apps."""
        name = object_in(self.server_file("server.meta.json")).get("name")
        return name if isinstance(name, str) and name else self.default_name

    def server_info(self) -> Json:
        """Return the `serverInfo` of the protocol. Description, website and icons are only in it if they are set."""
        path = self.server_file("server.meta.json")
        fields = object_in(path)
        given: Json = {}
        for key in TEXT_FIELDS:
            value = fields.get(key)
            if isinstance(value, str) and value:
                given[key] = value
            elif value not in (None, ""):
                journal.warning("%s: %s must be a string; it is ignored", path, key)
        if fields.get("icons") is not None:
            from mcpgreen.project.icons import wire_icons

            # Beside the file that names them, as for tools; or in the root, where bundles have their icon.
            directories = (self.server_dir, self.root)
            usable, complaints = wire_icons(fields["icons"], directories=directories, private=self.private)
            for complaint in complaints:
                journal.warning("%s: %s", path, complaint)
            if usable:
                given["icons"] = usable
        return {**self.default_info(given.get("name"), given.get("version")), **given}

    def default_info(self, name: str | None = None, version: str | None = None) -> dict[str, str]:
        """`server_info` without server.meta.json, or with no more than name and version there."""
        name = name or self.default_name
        title = " ".join(word[:1].upper() + word[1:] for word in name.replace("_", "-").split("-") if word) or name
        version = version or "".join((_text_in(os.path.join(self.root, "VERSION")) or "").split())
        packaged = object_in(os.path.join(self.root, "package.json")).get("version") if not version else None
        default = packaged if isinstance(packaged, str) and packaged else "0.0.0"
        return {"name": name, "title": title, "version": version or default}

    def instructions(self) -> str | None:
        """Return the text of server.instructions.md for the model, without trailing newlines."""
        return (_text_in(self.server_file("server.instructions.md")) or "").rstrip("\r\n") or None

    def variables(self) -> dict[str, str]:
        """Return the `KEY=value` lines of `server.d/env`. Nothing is expanded; quotes around a value are removed.

        Raises Untrusted if others could have written the file: variables decide what is run, and for which callers. To
        ignore the file would not be safe either, so the server does not start."""
        path = self.server_file("env")
        if not os.path.lexists(path):
            return {}
        self.require_trusted(path)
        variables, ignored = variables_in(_text_in(path) or "")
        for number in ignored:
            journal.warning("%s:%d: not a KEY=value line; ignored", path, number)
            self.complaints.append((path, f"line {number} is ignored: it is not KEY=value"))
        return variables

    def sourced(self, environ: Mapping[str, str], defaults: Mapping[str, str]) -> Sourced | None:
        """Run `server.d/env.sh` and return its changes to the environment; None if it is untrusted or fails."""
        path = self.server_file("env.sh")
        from mcpgreen.running import hooks
        from mcpgreen.running.scripts import jq

        given = {"MCPGREEN_PYTHON": sys.executable, **defaults, **environ}
        given |= dict.fromkeys(("MCPGREEN_PROJECT_ROOT", "MCPBASH_PROJECT_ROOT"), self.root)
        given["PATH"] = jq.path_with_jq(jq.path_in(given))
        try:
            self.require_trusted(path)
            return hooks.sourced_variables(path, given, directory=self.root)
        except ProjectError as error:
            journal.warning("%s is ignored: %s", path, error.reason)
            self.complaints += [(path, error.reason)] if not isinstance(error, Untrusted) else []
            return None


def variables_in(text: str) -> tuple[dict[str, str], list[int]]:
    """Return the variables in `KEY=value` lines, and the numbers of the lines that are none."""
    variables: dict[str, str] = {}
    ignored: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        key, equals, value = line.strip().partition("=")
        key = key.removeprefix("export ").strip()
        if not key or key.startswith("#"):
            continue
        if not equals or not key.isidentifier():
            ignored.append(number)
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        variables[key] = value
    return variables, ignored


def find_project(explicit: str | None, *, cwd: str, directories: Mapping[str, str]) -> Project | None:
    """Find the project that `explicit` names, else the nearest one around `cwd`, else None. Folders with MARKER come
    before folders that `unmarked` finds.

    Raises ProjectError if `explicit` is not a usable directory: to serve another project would be worse.
    """
    if explicit:
        root = os.path.join(cwd, os.path.expanduser(explicit))
        if not os.path.isdir(root):
            reason = "is not a directory" if os.path.lexists(root) else "does not exist"
            raise ProjectError(explicit, f"the project root {reason}")
        if not os.access(root, os.X_OK):
            raise ProjectError(explicit, "no permission to enter the project directory")
        return Project(root, directories)
    here = os.path.realpath(cwd)
    for place in upwards(here):
        if os.path.isfile(os.path.join(place, MARKER)):
            return Project(place, directories)
    from mcpgreen.project.unmarked import unmarked_root

    unmarked = unmarked_root(here)
    return None if unmarked is None else Project(unmarked, directories)


def upwards(place: str) -> Iterator[str]:
    """Yield a folder, and all folders around it."""
    yield place
    while (parent := os.path.dirname(place)) != place:
        yield parent
        place = parent


def open_project(
    flags: Mapping[str, str], environ: Mapping[str, str], *, needs_own: bool = False, runs_hooks: bool = True
) -> tuple[Project, Settings, Mapping[str, str]]:
    """Find the project that flags or environment name, or the one around the working directory, or the bundled one.
    Return it, all settings, including those in its `server.d/env`, `env.sh` and `.debug`, and the environment with the
    variables of these files.

    Raises ProjectError; with `needs_own` also if only the bundled one is left. `env.sh` is run if `runs_hooks`."""
    settings = load(flags, environ, {})
    directories = {name: getattr(settings, name) for name in DEFAULT_DIRECTORIES}
    try:
        cwd = os.sep if os.path.isabs(settings.project_root) else os.getcwd()
    except OSError as error:
        reason = "the current directory does not exist or cannot be entered; name a project with --project-root"
        raise ProjectError(os.curdir, reason) from error
    project = find_project(settings.project_root or None, cwd=cwd, directories=directories)
    if project is None:
        if needs_own:
            from mcpgreen.project.unmarked import forgotten_script

            forgotten = forgotten_script(cwd)
            remedy = f"{os.path.relpath(forgotten, cwd)} is not executable; run chmod +x on it" if forgotten else REMEDY
            raise ProjectError(cwd, f"there is no project here or in a parent directory: {NO_PROJECT}. {remedy}")
        project = Project(bundled_project_root(), directories)
        journal.warning("no project in or above %s: %s; using the bundled example. %s", cwd, NO_PROJECT, REMEDY)
    own_variables = project.variables()
    if settings.origin("log_level") == "default" and os.path.exists(project.server_file(".debug")):
        own_variables.setdefault("MCPBASH_LOG_LEVEL", "debug")
    sourced = None
    if runs_hooks and os.path.lexists(project.server_file("env.sh")):
        if not load(flags, environ, own_variables).core_dumps:
            from mcpgreen.running import system

            system.shut_out_others()  # a hook may leave a process behind that would attach to us
        sourced = project.sourced(environ, own_variables)
    decided: Set[str] = set()
    if sourced is not None:
        own_variables = sourced.applied_to(own_variables)
        decided = sourced.changed.keys() | sourced.removed
    if own_variables or decided:
        settings = load(flags, environ, own_variables)
        own_directories = {name: getattr(settings, name) for name in DEFAULT_DIRECTORIES}
        project.place(own_directories | {"server_dir": directories["server_dir"]})  # where the variables came from
        # env.sh has seen the environment, so its variables win, such as PATH. But the environment wins for settings.
        kept = {key: environ[key] for key in environ if key.startswith(SETTING_PREFIXES) or key not in decided}
        environ = {**own_variables, **kept}
    project.default_name = settings.server_name or project.default_name
    project.skills_as_prompts = settings.skills_as_prompts
    return project, settings, environ


def bundled_project_root() -> str:
    """Return the example to serve if there is no project: shipped inside the package, or next to it in a checkout."""
    shipped = os.path.join(PACKAGE_DIR, "default_project")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(PACKAGE_DIR), "project")


def _text_in(path: str) -> str | None:
    if not os.path.lexists(path):
        return None
    try:
        return content_of(path, MAX_TEXT_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    except ProjectError as error:
        journal.warning("%s is ignored: %s", path, error.reason)
        return None


def object_in(path: str) -> Json:
    """Return the object in a JSON file; an empty one, with a warning, if the file cannot be used."""
    text = _text_in(path)
    try:
        value = jsontext.loads(text) if text is not None else {}
        if isinstance(value, dict):
            return value
        journal.warning("%s: must be a JSON object", path)
    except ValueError as error:
        journal.warning("%s: not valid JSON: %s", path, error)
    return {}


def remote_token(settings: Settings) -> RemoteToken | None:
    """Return the token that messages have to carry. Raises ProjectError for a token that could be guessed."""
    secret = settings.remote_token
    if not secret:
        return None
    from mcpgreen.protocol.token import MIN_CHARS, RemoteToken

    if len(secret) < MIN_CHARS:
        reason = f"a remote token needs at least {MIN_CHARS} characters, but this one has {len(secret)}"
        raise ProjectError(settings.origin("remote_token"), reason)
    return RemoteToken(secret, key=settings.remote_token_key)


def require_tmp_root(project: Project, settings: Settings) -> None:
    """Raises ProjectError if the setting `tmp_root` names a directory that cannot be used."""
    if settings.tmp_root:
        from mcpgreen.running.scripts.temporary import require_usable

        require_usable(settings.tmp_root, root=project.root)


def operator_roots(project: Project, settings: Settings) -> Roots | None:
    """Return the roots that the operator names, or None. Raises ProjectError if one of them cannot be used."""
    if not settings.roots:
        return None
    from mcpgreen.project.roots import configured_roots

    return configured_roots(project.root, settings.roots)
