"""Read a project's registration: `server.d/register.json`, or else what `server.d/register.sh` registers.

Both give a `Registration`: for each kind the raw items, or None for a kind that is found on disk. Here an item only has
to be an object with a name; `items` reads the rest.

`Registrar` decides when to read again: when a file or its trustworthiness has changed, and after a time to live. With a
static registry, the first registration that can be used counts for good. A server runs the hook in time (`run_hook`),
and `current` returns the answer of its last run. Without a server, `current` runs the hook itself.

Rules: one mistake makes a whole register.json invalid. The author wrote down what to offer, so a guess, or the items on
disk instead, would offer something else. Nothing here switches greenlets, apart from the `run` of `run_hook`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import A_DURATION, require_names_once, require_object, shown
from mcpgreen.catalog.tree_scan import SETTLING_NS, Loss
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, without_waiting
from mcpgreen.project.project import Project
from mcpgreen.settings.settings import Settings
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

if TYPE_CHECKING:
    from mcpgreen.running.hooks import Hook, HookEnd, HookShell

# The fields that each item needs when a script registers it. A prompt may have messages in place of a path.
REQUIRED_FIELDS = {
    "tools": ("name", "path"),
    "resources": ("name", "uri"),
    "resourceTemplates": ("name", "uriTemplate"),
    "prompts": ("name",),
    "completions": ("name", "path"),
}
KINDS = tuple(REQUIRED_FIELDS)

HOOK_SECS = 30.0
MAX_BYTES = 1 << 20  # of register.json, and of what register.sh registers or prints
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DEFAULT_TTL_SECS = 5.0  # mcp-bash takes 0 for the default
Fingerprint = tuple[Any, ...]


class Registration(NamedTuple):
    """The registered items. `items` has every kind; None stands for a kind that is found on disk."""

    source: str  # for messages: server.d/register.json
    items: dict[str, list[Json] | None]
    hash: str
    warnings: tuple[str, ...] = ()


class Statement(NamedTuple):
    """The registration in a file, or the error in it. It is valid as long as the fingerprint is the same."""

    fingerprint: Fingerprint | None  # None: the file was just written, and may be written again without a new time
    read_at: float
    said: Registration | ProjectError | None


class Registrar:
    """The registration of one project, as of now."""

    def __init__(
        self,
        project: Project,
        *,
        settings: Settings,
        shell: HookShell | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """With a `shell`, `current` runs the hook and waits for it. A server gives none."""
        self._project = project
        self._settings = settings
        self._shell = shell
        self._clock = clock
        self._ttl_secs: float = settings.register_ttl or DEFAULT_TTL_SECS
        self._json_path = project.server_file("register.json")
        self._hook_path = project.server_file("register.sh")
        self._json: Statement | None = None
        self._hook: Statement | None = None
        self._is_final = False
        self._counting: Registration | None = None

    def current(self) -> Registration | None:
        """Return the registration that counts now; None if all items are found on disk. Raises ProjectError."""
        if self._is_final:
            return self._counting
        said = self._read_json()
        if said is None and self._settings.allow_project_hooks:
            if self._shell is not None and self.is_hook_due():
                self.run_hook(self._shell.run_blocking)
            said = self._hook.said if self._hook is not None and os.path.lexists(self._hook_path) else None
        if isinstance(said, ProjectError):
            raise ProjectError(said.path, said.reason)
        self._counting = said
        self._is_final = self._settings.is_static and not self.is_hook_due()
        return said

    def is_hook_due(self) -> bool:
        """Tell whether `register.sh` counts and has not been run since it changed."""
        if not self.has_hook():
            return False
        if self._hook is None or self._settings.is_static:
            return self._hook is None
        return self._hook.fingerprint != _fingerprint_of(self._project, self._hook_path)

    def is_hook_old(self) -> bool:
        """Tell whether the last run was so long ago that the answer may have changed."""
        if self._hook is None or self._settings.is_static or not self.has_hook():
            return False
        return self._clock() - self._hook.read_at >= self._ttl_secs

    def run_hook(self, run: Callable[[Hook], HookEnd]) -> None:
        """Run `register.sh` by `run`, and keep its answer."""
        fingerprint = _fingerprint_of(self._project, self._hook_path)
        said = _said_by(lambda: run_register_sh(self._project, self._settings, run=run))
        self._hook = Statement(fingerprint, self._clock(), said)

    def has_hook(self) -> bool:
        """Tell whether `register.sh` counts."""
        return (
            not self._is_final
            and self._settings.allow_project_hooks
            and os.path.lexists(self._hook_path)
            and not os.path.lexists(self._json_path)
        )

    def _read_json(self) -> Registration | ProjectError | None:
        fingerprint, now = _fingerprint_of(self._project, self._json_path), self._clock()
        if fingerprint is None:
            return None
        if self._json is None or self._json.fingerprint != fingerprint or now - self._json.read_at >= self._ttl_secs:
            is_settled = fingerprint[0] < time.time_ns() - SETTLING_NS
            said = _said_by(lambda: read_register_json(self._project))
            self._json = Statement(fingerprint if is_settled else None, now, said)
        return self._json.said


def _said_by(read: Callable[[], Registration | None]) -> Registration | ProjectError | None:
    try:
        return read()
    except ProjectError as error:
        return error


def _fingerprint_of(project: Project, path: str) -> Fingerprint | None:
    """Return a value that changes when the file, or whether it is trusted, changes; None if there is no such file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    problem = project.ground(project.server_dir).problem_with_hook(path)
    return (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, problem)


def read_register_json(project: Project) -> Registration | None:
    """Read register.json; None if there is no such file. Raises ProjectError for any mistake in it."""
    path = project.server_file("register.json")
    if not os.path.lexists(path):
        return None
    project.require_trusted(path)
    raw = content_of(path, MAX_BYTES)
    if raw.startswith(BYTE_ORDER_MARK):
        raise ProjectError(path, "it starts with a byte order mark; save it as UTF-8 without one")
    content = _object_in(path, raw)
    content.pop("$schema", None)  # for editors
    version = content.pop("version", None)
    if isinstance(version, bool) or version != 1:
        raise ProjectError(path, f"version must be 1, found {shown(version)}")
    if not isinstance(content.pop("_meta", {}), dict):
        raise ProjectError(path, "_meta must be an object")
    for key in content:
        if key not in KINDS:
            raise ProjectError(path, f"unknown key {shown(key)}; supported: version, {', '.join(KINDS)} and _meta")
    items = {kind: _checked_items(project, path, kind, content.get(kind)) for kind in KINDS}
    return Registration(project.shown(path), items, jsontext.digest(items))


def run_register_sh(project: Project, settings: Settings, *, run: Callable[[Hook], HookEnd]) -> Registration | None:
    """Run the hook by `run` and read its answer; None if it is not allowed or does not exist. Raises ProjectError."""
    path = project.server_file("register.sh")
    if not settings.allow_project_hooks or not os.path.lexists(path):
        return None
    project.require_trusted(path)
    if not is_script(path):
        journal.warning("%s is ignored: it is not executable (chmod +x) and has no shebang", project.shown(path))
        return None
    from mcpgreen.running.hooks import Hook, records_in  # most projects have no hook

    end = run(Hook("register", path, HOOK_SECS, MAX_BYTES))
    records = records_in(end.answer)
    if end.failure:
        said = f"\n{end.stderr_tail}" if end.stderr_tail else ""
        journal.error("%s: %s%s", project.shown(path), end.failure, said)
        raise ProjectError(path, f"Manual registration script failed: {end.failure}")
    warnings: list[str] = []
    registered = _registered(project.shown(path), records, warnings)
    printed = _printed(project, path, end.stdout, is_needed=not any(registered.values()), warnings=warnings)
    items: dict[str, list[Json] | None] = {}
    for kind in KINDS:
        given = registered[kind] or (printed[kind] if printed is not None else None)
        items[kind] = None if given is None else _usable(project, path, kind, given, warnings)
    return Registration(project.shown(path), items, jsontext.digest([items, warnings]), tuple(warnings))


def _object_in(path: str, raw: bytes) -> Json:
    try:
        return require_object(path, _sendable(raw))
    except ValueError as error:
        raise ProjectError(path, f"not valid JSON: {error}") from error


def _sendable(raw: bytes | str) -> object:
    """Return the JSON value. Raises ValueError also for a value that cannot be written again, such as 1e999."""
    value = jsontext.loads(raw)
    require_names_once(raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass"))
    jsontext.dumps(value)
    return value


def _checked_items(project: Project, path: str, kind: str, items: object) -> list[Json] | None:
    if items is None:
        return None
    if not isinstance(items, list):
        raise ProjectError(path, f"{kind} must be an array, found {shown(items)}")
    names: set[str] = set()
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise ProjectError(path, f"{kind}[{index}] must be an object, found {shown(item)}")
        if problem := _problem_with_fields(project, kind, item, ("name",)):
            raise ProjectError(path, f"{kind}[{index}].{problem}")
        if kind == "completions" and item["name"] in names:
            raise ProjectError(path, f"{kind}[{index}]: the name {shown(item['name'])} is already taken")
        names.add(item["name"])
    return items


def _problem_with_fields(project: Project, kind: str, item: Json, required: tuple[str, ...]) -> str | None:
    for field in required:
        if not isinstance(item.get(field), str) or not item[field]:
            return f"{field} must be a string, found {shown(item.get(field))}"
    if kind != "completions":
        return None
    path, secs = item.get("path"), item.get("timeoutSecs")
    if not isinstance(path, str) or not path or "\0" in path:
        return f"path must be a string, found {shown(path)}"
    if secs is not None and not A_DURATION.accepts(secs):
        return f"timeoutSecs must be {A_DURATION.wanted}, found {shown(secs)}"
    real_path = os.path.realpath(os.path.join(project.root, path))
    if not is_within(real_path, project.root):
        return "path is outside the project"
    return None if os.path.isfile(real_path) else f"path: there is no file {shown(path)}"


def is_script(path: str) -> bool:
    try:
        with open(path, "rb", opener=without_waiting) as file:
            return os.access(path, os.X_OK) or file.read(2) == b"#!"
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error


def _registered(source: str, records: list[tuple[str, str]], warnings: list[str]) -> dict[str, list[object]]:
    """Return the items that the hook registered by functions, without those between a begin and its abort."""
    items: dict[str, list[object]] = {kind: [] for kind in KINDS}
    begun_at = dict.fromkeys(KINDS, 0)
    for what, content in records:
        verb, _, kind = what.partition(" ")
        if kind not in items:
            continue
        if verb == "item":
            try:
                items[kind].append(_sendable(content))
            except ValueError as error:
                warnings.append(Loss(f"{source}: an item in {kind} is left out: not valid JSON: {error}"))
        elif verb == "abort":
            del items[kind][begun_at[kind] :]
        else:  # begin and finalize: an abort does not remove the items before it
            begun_at[kind] = len(items[kind])
    return items


def _printed(
    project: Project, path: str, stdout: bytes, *, is_needed: bool, warnings: list[str]
) -> dict[str, list[object]] | None:
    """Return the items that the hook printed instead of calling functions; a kind that it does not name is empty. None
    if it printed no object, which is an error only if it registered nothing."""
    if not stdout.strip():
        return None
    try:
        content = _object_in(path, stdout)
        for kind in KINDS:
            if not isinstance(content.get(kind) or [], list):
                raise ProjectError(path, f"{kind} must be an array, found {shown(content[kind])}")
    except ProjectError as error:
        if is_needed:
            raise ProjectError(path, f"its output is not a registration: {error.reason}") from error
        return None
    unknown = sorted(set(content) - {*KINDS, "version", "_meta", "$schema"})
    if unknown:
        warnings.append(f"{project.shown(path)}: ignored these keys in its output: {', '.join(map(shown, unknown))}")
    return {kind: content.get(kind) or [] for kind in KINDS}


def _usable(project: Project, path: str, kind: str, items: list[Any], warnings: list[str]) -> list[Json]:
    """Return the items with all fields that they need, the first of each name, sorted by name."""
    usable: dict[str, Json] = {}
    for item in items:
        problem: str | None = f"it must be an object, found {shown(item)}"
        if isinstance(item, dict):
            problem = _problem_with_fields(project, kind, item, REQUIRED_FIELDS[kind])
        if problem:
            warnings.append(Loss(f"{project.shown(path)}: an item in {kind} is left out: {problem}"))
        else:
            usable.setdefault(item["name"], item)
    return [usable[name] for name in sorted(usable)]
