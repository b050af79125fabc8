"""Read the registration of a project: `server.d/register.json`, or the answer of `server.d/register.sh`.

Both give a `Registration`: for each kind the raw items, or None for a kind that is found on disk. Here an item only has
to be an object with a name; `items` reads the rest. `current` decides when to read again.

Rule: one mistake makes a whole register.json invalid. The author wrote down what to offer, so a guess, or the items on
disk instead, would offer something else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpgreen import journal
from mcpgreen.catalog.descriptions.metadata import A_DURATION, require_object, shown
from mcpgreen.catalog.tree_scan import Loss
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, without_waiting
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

if TYPE_CHECKING:
    from mcpgreen.project.project import Project
    from mcpgreen.running.hooks import Hook, HookEnd
    from mcpgreen.settings.settings import Settings

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


class Registration(NamedTuple):
    """The registered items. `items` has every kind; None stands for a kind that is found on disk."""

    source: str  # for messages: server.d/register.json
    items: dict[str, list[Json] | None]
    hash: str
    warnings: tuple[str, ...] = ()


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
            raise ProjectError(path, f"unknown key {shown(key)}; known are version, {', '.join(KINDS)} and _meta")
    items = {kind: _checked_items(project, path, kind, content.get(kind)) for kind in KINDS}
    return Registration(project.shown(path), items, jsontext.digest(items))


def run_register_sh(
    project: Project,
    settings: Settings,
    *,
    run: Callable[[Hook], HookEnd],
    warn: Callable[[str], None] = journal.warning,
) -> Registration | None:
    """Run the hook by `run`, a method of `HookShell`, and read its answer; None if it is not allowed or does not exist.
    Raises ProjectError if it fails."""
    path = project.server_file("register.sh")
    if not settings.allow_project_hooks or not os.path.lexists(path):
        return None
    project.require_trusted(path)
    if not is_script(path):
        warn(f"{project.shown(path)} is ignored: it is neither executable (chmod +x) nor starts with #!")
        return None
    from mcpgreen.running.hooks import Hook, records_in

    end = run(Hook("register", path, HOOK_SECS, MAX_BYTES))
    records = records_in(end.answer)
    if end.failure:
        said = f"\n{end.stderr_tail}" if end.stderr_tail else ""
        journal.error("%s: %s%s", project.shown(path), end.failure, said)
        raise ProjectError(path, f"Manual registration script failed: {end.failure}")
    return _recorded(project, path, records, end.stdout)


def _object_in(path: str, raw: bytes) -> Json:
    try:
        return require_object(path, _sendable(raw))
    except ValueError as error:
        raise ProjectError(path, f"not valid JSON: {error}") from error


def _sendable(raw: bytes | str) -> object:
    """The JSON value. Raises ValueError also for a value that cannot be written again, such as 1e999."""
    value = jsontext.loads(raw)
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
        name = item.get("name")
        if not isinstance(name, str) or not name:
            raise ProjectError(path, f"{kind}[{index}].name must be a text, found {shown(name)}")
        if kind == "completions":
            if name in names:
                raise ProjectError(path, f"{kind}[{index}]: the name {shown(name)} is already taken")
            names.add(name)
            problem = _problem_with_completion(project, item)
            if problem:
                raise ProjectError(path, f"{kind}[{index}].{problem}")
    return items


def _problem_with_completion(project: Project, item: Json) -> str | None:
    path, secs = item.get("path"), item.get("timeoutSecs")
    if not isinstance(path, str) or not path or "\0" in path:
        return f"path must be a text, found {shown(path)}"
    if secs is not None and not A_DURATION.accepts(secs):
        return f"timeoutSecs must be {A_DURATION.wanted}, found {shown(secs)}"
    real_path = os.path.realpath(os.path.join(project.root, path))
    if not is_within(real_path, project.root):
        return "path leads out of the project"
    return None if os.path.isfile(real_path) else f"path: there is no file {shown(path)}"


def is_script(path: str) -> bool:
    try:
        with open(path, "rb", opener=without_waiting) as file:
            return os.access(path, os.X_OK) or file.read(2) == b"#!"
    except OSError as error:
        raise ProjectError(path, f"it cannot be read: {error.strerror}") from error


def _recorded(project: Project, path: str, records: list[tuple[str, str]], stdout: bytes) -> Registration:
    warnings: list[str] = []
    registered = _registered(project.shown(path), records, warnings)
    printed = _printed(project, path, stdout, is_needed=not any(registered.values()), warnings=warnings)
    items: dict[str, list[Json] | None] = {}
    for kind in KINDS:
        given = registered[kind] or (printed[kind] if printed is not None else None)
        items[kind] = None if given is None else _usable(project, path, kind, given, warnings)
    return Registration(project.shown(path), items, jsontext.digest([items, warnings]), tuple(warnings))


def _registered(source: str, records: list[tuple[str, str]], warnings: list[str]) -> dict[str, list[object]]:
    """The items that the hook registered by functions, without those between a begin and its abort."""
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
                warnings.append(Loss(f"{source}: an item of {kind} is left out: not valid JSON: {error}"))
        elif verb == "abort":
            del items[kind][begun_at[kind] :]
        else:  # begin and finalize: an abort does not remove the items before it
            begun_at[kind] = len(items[kind])
    return items


def _printed(
    project: Project, path: str, stdout: bytes, *, is_needed: bool, warnings: list[str]
) -> dict[str, list[object]] | None:
    """The items that the hook printed instead of calling functions; a kind that it does not name is empty. None if it
    printed no object, which is an error only if it registered nothing."""
    if not stdout.strip():
        return None
    try:
        content = _object_in(path, stdout)
        for kind in KINDS:
            if not isinstance(content.get(kind) or [], list):
                raise ProjectError(path, f"{kind} must be an array, found {shown(content[kind])}")
    except ProjectError as error:
        if is_needed:
            raise ProjectError(path, f"what it prints is no registration: {error.reason}") from error
        return None
    unknown = sorted(set(content) - {*KINDS, "version", "_meta", "$schema"})
    if unknown:
        warnings.append(f"{project.shown(path)}: ignored in what it prints: {', '.join(map(shown, unknown))}")
    return {kind: content.get(kind) or [] for kind in KINDS}


def _usable(project: Project, path: str, kind: str, items: list[Any], warnings: list[str]) -> list[Json]:
    """The items with all fields that they need, the first of each name, sorted by name."""
    usable: dict[str, Json] = {}
    for item in items:
        problem = _problem_with_item(project, kind, item)
        if problem:
            warnings.append(Loss(f"{project.shown(path)}: an item of {kind} is left out: {problem}"))
        else:
            usable.setdefault(item["name"], item)
    return [usable[name] for name in sorted(usable)]


def _problem_with_item(project: Project, kind: str, item: Any) -> str | None:
    if not isinstance(item, dict):
        return f"it must be an object, found {shown(item)}"
    for field in REQUIRED_FIELDS[kind]:
        if not isinstance(item.get(field), str) or not item[field]:
            return f"{field} must be a text, found {shown(item.get(field))}"
    return _problem_with_completion(project, item) if kind == "completions" else None
