"""Find a project's MCP Apps, which are `ui://` resources that clients show, and build their HTML.

An app is a directory `ui/` next to a tool, or a directory in the project's own `ui/`, with ui.meta.json or index.html.
Its text is its HTML file or, without one, a template.

Rule: one bad app costs this app and a warning. No symbolic link is followed, so that clients only see files in the
directory of the app. This is checked again when an app is read, because links come and go.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import A_BOOLEAN, A_STRING, AN_OBJECT, AN_OBJECT_OR_BOOLEAN, Rule
from mcpgreen.catalog.tree_scan import UNPACED, Loss, Pace, Tree, survey
from mcpgreen.errors import InvalidParams, OutputTooLarge, ProjectError
from mcpgreen.files.regular_files import existing_file
from mcpgreen.project.project import Project
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

DEFAULT_ENTRY = "index.html"
SCHEME = "ui://"
MIME_TYPE = "text/html;profile=mcp-app"
VISIBILITY = ["model", "app"]
FLAT_KEY = "ui/resourceUri"  # where early clients looked; its successor is resourceUri in ui

CSP_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
# Hosts put a domain into a header, so a domain must not contain a character that ends a directive.
_DOMAIN = r"[^\s;,'\"]+"

FIELD_RULES = {
    "title": A_STRING,
    "description": A_STRING,
    "entrypoint": Rule(
        lambda value: isinstance(value, str) and bool(value),
        "the name of an HTML file",
        {"type": "string", "minLength": 1},
    ),
    "template": A_STRING,
    "config": AN_OBJECT,
    "meta": AN_OBJECT,
}
META_RULES = {"csp": AN_OBJECT, "permissions": AN_OBJECT, "prefersBorder": A_BOOLEAN, "sandboxDomain": A_STRING}
DOMAINS = Rule(
    lambda value: isinstance(value, list) and all(metadata.matches(_DOMAIN, each) for each in value),
    "an array of origins such as https://example.com",
    {"type": "array", "items": {"type": "string"}},
)


class App(NamedTuple):
    """One MCP App. `definition` is its item in a list; its contents have the same `_meta`."""

    name: str
    uri: str
    directory: str
    entry: str | None
    template: str | None
    config: Json
    definition: Json


def discover_apps(project: Project, server_name: str, pace: Pace = UNPACED) -> tuple[list[App], list[str]]:
    """Return every app, sorted by name, apps of tools first, and warnings about apps that cannot be served."""
    warnings: list[str] = []
    apps: dict[str, App] = {}
    for name, directory in pace.over(_candidates(project, warnings, pace)):
        if name in apps:
            shown, first = project.shown(directory), project.shown(apps[name].directory)
            warnings.append(Loss(f"{shown}: skipped because {first} already provides the app {name}"))
        elif app := _app_in(directory, name, server_name, warnings=warnings, project=project):
            apps[name] = app
    return list(apps.values()), warnings


def app_for(uri: str, project: Project, server_name: str) -> App | None:
    """Return the app of `ui://<server>/<name>` or `ui://<name>`; read no other. Raises InvalidParams."""
    name = _name_in(uri)
    if name.startswith(".") or not name.isprintable():
        return None
    tool = os.path.join(project.tools_dir, name)
    for parent, path in ((tool, os.path.join(tool, "ui")), (project.ui_dir, os.path.join(project.ui_dir, name))):
        is_there = _accept_directory(project, parent, []) and _accept_directory(project, path, [])
        if is_there and (app := _app_in(path, name, server_name, warnings=[], project=project)):
            return app
    return None


def _name_in(uri: str) -> str:
    """Return the name of the app in its URI. Raises InvalidParams."""
    scheme, rest = uri[: len(SCHEME)], uri[len(SCHEME) :]
    segments = rest.split("/")
    if scheme.lower() != SCHEME or not segments[-1] or len(segments) > 2:
        raise InvalidParams("An app's URI has the form ui://<server>/<name>.")
    from urllib.parse import unquote  # takes long to import, and few projects have apps

    name = unquote(segments[-1])
    if name in (".", "..") or any(character in name for character in "/\\\0"):
        raise InvalidParams("An app's URI has the form ui://<server>/<name>, with nothing after the name.")
    return name


def app_html(app: App, *, limit_bytes: int) -> bytes:
    """Return the document, in UTF-8. Raises ProjectError if it cannot be made, OutputTooLarge if it is too long."""
    if app.entry is not None:
        content = _content_of(app, app.entry, limit_bytes)
    else:
        from mcpgreen.catalog.apps import templates  # it needs a table of all entities of HTML

        assert app.template is not None, "an app has a file or a template"
        title = app.definition.get("title") or app.name
        content = templates.render(app.template, app.config, title=title).encode("utf-8")
    if len(content) > limit_bytes:
        raise OutputTooLarge(f"The app {app.name} is larger than {limit_bytes} bytes (max_resource_bytes).")
    return content


def directory_beside(script: str) -> str:
    """Return the directory of a script's app, which need not exist."""
    return os.path.join(os.path.dirname(script), "ui")


def with_ui(tool_meta: Json | None, *, app_uri: str) -> Json:
    """Return the `_meta` of a tool with an app: the author's fields, and defaults for the missing ones."""
    meta = dict(tool_meta or {})
    ui = dict(meta["ui"]) if isinstance(meta.get("ui"), dict) else {}
    flat_uri = meta.pop(FLAT_KEY, None)
    ui["resourceUri"] = ui.get("resourceUri") or flat_uri or app_uri
    ui["visibility"] = ui.get("visibility") or list(VISIBILITY)
    return {**meta, "ui": ui}


def look_at_apps(project: Project, pace: Pace = UNPACED) -> Tree:
    """Return a tree whose fingerprint changes whenever a file of an app does. Reads no file."""
    directories = [directory for _, directory in _candidates(project, [], pace)]
    # It is not served, and may have thousands of files.
    return survey(project, directories, pace=pace, without=("node_modules",))


def _candidates(project: Project, warnings: list[str], pace: Pace) -> Iterator[tuple[str, str]]:
    """Yield the names and directories of possible apps."""
    for name, path in _directories_in(project, project.tools_dir, [], pace):  # its warnings come with the tools
        below = os.path.join(path, "ui")
        if _accept_directory(project, below, warnings):
            yield name, below
        pace.step()
    yield from _directories_in(project, project.ui_dir, warnings, pace)


def _directories_in(project: Project, parent: str, warnings: list[str], pace: Pace) -> Iterator[tuple[str, str]]:
    """Yield the directories in `parent`, with their names, sorted."""
    try:
        with os.scandir(parent) as entries:
            found = [entry for entry in pace.over(entries) if entry.is_symlink() or entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError:
        warnings.append(f"{project.shown(parent)}: no permission to read the directory")
        return
    for entry in sorted(found, key=lambda entry: entry.name):
        if entry.name.startswith(".") or not _accept_directory(project, entry.path, warnings):
            continue
        if entry.name.isprintable():
            yield entry.name, entry.path
        else:
            shown = f"{project.shown(entry.path)!a}"
            warnings.append(Loss(f"{shown}: skipped because its name has unprintable characters"))


def _accept_directory(project: Project, path: str, warnings: list[str]) -> bool:
    """Return True for a directory. Warn about a link to one, which is not followed."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode) and os.path.isdir(path):
        warnings.append(f"{project.shown(path)}: a symbolic link to a directory is not followed")
    return stat.S_ISDIR(mode)


def _app_in(directory: str, name: str, server_name: str, *, warnings: list[str], project: Project) -> App | None:
    """Read the app in this directory. Return None if there is no app, or, with a warning, if it cannot be served."""
    source = os.path.join(directory, metadata.UI_DESCRIPTION)
    if not os.path.lexists(source) and not os.path.lexists(os.path.join(directory, DEFAULT_ENTRY)):
        return None
    complaints: list[str] = []
    try:
        return _described_app(directory, name, server_name, source, complaints, project=project)
    except ProjectError as error:
        warnings.append(Loss(f"{project.shown(error.path)}: {error.reason}; the app is left out"))
        return None
    finally:
        warnings.extend(f"{project.shown(source)}: {complaint}" for complaint in complaints)


def _described_app(
    directory: str, name: str, server_name: str, source: str, complaints: list[str], *, project: Project
) -> App:
    fields: Json = {}
    if os.path.lexists(source):
        fields = metadata.read_meta_file(_plain_file(source, metadata.UI_DESCRIPTION, source))
        fields = metadata.checked(source, fields, FIELD_RULES)
    ui = _ui_meta(source, fields.get("meta", {}), complaints)
    template, config = fields.get("template"), fields.get("config", {})
    entrypoint = fields.get("entrypoint", DEFAULT_ENTRY)
    entry = _entry_in(directory, entrypoint, source)
    if entry is None:
        if template is None:
            raise ProjectError(source, f"there is no {entrypoint}, and template is not set")
        from mcpgreen.catalog.apps import templates

        templates.require_usable(source, template, config)
    from urllib.parse import quote

    server, path = (quote(part, safe="", errors="replace") for part in (server_name, name))
    uri = f"{SCHEME}{server}/{path}"
    owner = "for the tool " if is_within(directory, project.tools_dir) else ""
    said = {key: fields[key] for key in ("title", "description") if fields.get(key)}
    said.setdefault("description", f"MCP App {owner}{name}")
    definition = {"name": name, "uri": uri, **said, "mimeType": MIME_TYPE, "_meta": {"ui": ui}}
    return App(name, uri, directory, entry, template, config, definition)


def _ui_meta(source: str, given: Json, complaints: list[str]) -> Json:
    """`_meta.ui` of the app: the given fields or defaults, in the form that hosts read."""
    given = metadata.checked(source, given, META_RULES, "meta.")
    csp = _members(source, given, "csp", CSP_FIELDS, DOMAINS, complaints)
    permissions = _members(source, given, "permissions", PERMISSIONS, AN_OBJECT_OR_BOOLEAN, complaints)
    # An object asks for the permission, and so does true; hosts know objects only.
    wanted = {key: value if isinstance(value, dict) else {} for key, value in permissions.items() if value is not False}
    ui = {"csp": csp, "permissions": wanted, "prefersBorder": given.get("prefersBorder", True)}
    return {**ui, "domain": given["sandboxDomain"]} if given.get("sandboxDomain") else ui


def _members(source: str, meta: Json, key: str, known: Sequence[str], rule: Rule, complaints: list[str]) -> Json:
    """Return the known members of one of the objects in `meta`, by one rule."""
    given, prefix = meta.get(key, {}), f"meta.{key}."
    unknown = (member for member in given if member not in known)
    complaints.extend(f"{prefix}{member} is unknown and left out; supported: {', '.join(known)}" for member in unknown)
    members = {member: given[member] for member in known if member in given}
    return metadata.checked(source, members, dict.fromkeys(known, rule), prefix)


def _entry_in(directory: str, entrypoint: str, source: str) -> str | None:
    """Return the path of the HTML file, or None if there is none."""
    if os.path.isabs(entrypoint) or ".." in entrypoint.split("/") or "\0" in entrypoint or "\\" in entrypoint:
        raise ProjectError(source, "entrypoint must be a file in the app's directory")
    if entrypoint.startswith(".") or "/." in entrypoint:
        raise ProjectError(source, "entrypoint must not be hidden: files whose names begin with a dot are never served")
    path = os.path.normpath(os.path.join(directory, entrypoint))
    return _plain_file(path, entrypoint, source) if os.path.lexists(path) else None


def _plain_file(path: str, name: str, source: str) -> str:
    """Return the same path. Raises ProjectError if it is not a regular file in its place."""
    if os.path.realpath(path) != path:
        raise ProjectError(source, f"{name} is a symbolic link, or is reached through one; put the file itself there")
    if not os.path.isfile(path):
        raise ProjectError(source, f"{name} is not a file")
    return path


def _content_of(app: App, path: str, limit_bytes: int) -> bytes:
    name = os.path.relpath(path, app.directory)
    try:
        if os.path.realpath(path) != path:
            raise ProjectError(app.uri, f"{name} is a symbolic link, or is reached through one")
        with open(existing_file(path), "rb") as file:
            content = file.read(limit_bytes + 1)
        if len(content) <= limit_bytes:
            content.decode("utf-8")
    except OSError as error:
        raise ProjectError(app.uri, f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ProjectError(app.uri, f"{name} is not UTF-8") from None
    return content
