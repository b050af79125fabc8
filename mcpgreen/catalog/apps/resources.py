"""Find the pages of a project that clients can show (MCP Apps), and give their HTML.

A page is a directory `ui/` beside a tool, or one below the project's own `ui/`, that has ui.meta.json or index.html.
Its text is the HTML file in it or, without one, a template. Nothing here knows about caching or clients.

Rule: one bad page costs this page and a warning. No symbolic link is followed, so that what clients see lies in the
directory of its page; this is checked again when a page is read, because links come and go.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import (
    A_BOOLEAN,
    A_STRING,
    AN_OBJECT,
    AN_OBJECT_OR_BOOLEAN,
    Rule,
    is_object,
    is_string,
)
from mcpgreen.catalog.items import Loss
from mcpgreen.errors import InvalidParams, OutputTooLarge, ProjectError
from mcpgreen.project.project import Project
from mcpgreen.text.uris import SAFE_BYTES, is_within

DESCRIPTION = "ui.meta.json"
DEFAULT_ENTRY = "index.html"
SCHEME = "ui://"
SLASH = ord("/")
MIME_TYPE = "text/html;profile=mcp-app"
VISIBILITY = ["model", "app"]
FLAT_KEY = "ui/resourceUri"  # where early clients looked; its successor is resourceUri in ui

CSP_FIELDS = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
# Hosts put a domain into a header of their own: what could end one directive and begin another is no domain.
_DOMAIN = re.compile(r"[^\s;,'\"]+")
_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")

FIELD_RULES = {
    "title": A_STRING,
    "description": A_STRING,
    "entrypoint": Rule(lambda value: is_string(value) and bool(value), "the name of an HTML file"),
    "template": A_STRING,
    "config": AN_OBJECT,
    "meta": AN_OBJECT,
}
META_RULES = {"csp": AN_OBJECT, "permissions": AN_OBJECT, "prefersBorder": A_BOOLEAN, "sandboxDomain": A_STRING}
DOMAINS = Rule(
    lambda value: isinstance(value, list) and all(is_string(each) and _DOMAIN.fullmatch(each) for each in value),
    "an array of origins such as https://example.com",
)


class Page(NamedTuple):
    """One page. `definition` is its item in a list; its contents have the same `_meta`."""

    name: str
    uri: str
    directory: str
    entry: str | None
    template: str | None
    config: dict[str, Any]
    definition: dict[str, Any]


def discover_pages(project: Project, server_name: str) -> tuple[list[Page], list[str]]:
    """Every page, those of tools first, each group by name; and what is wrong with the others."""
    warnings: list[str] = []
    pages: dict[str, Page] = {}
    for name, directory in _candidates(project, warnings):
        if name in pages:
            shown, first = project.shown(directory), project.shown(pages[name].directory)
            warnings.append(Loss(f"{shown}: skipped, {first} already provides the page {name}"))
            continue
        try:
            page = _page_in(directory, name, server_name, warnings=warnings, project=project)
        except ProjectError as error:
            warnings.append(Loss(f"{project.shown(error.path)}: {error.reason}; the page is left out"))
            continue
        if page is not None:
            pages[name] = page
    return list(pages.values()), warnings


def fingerprint(project: Project) -> tuple[Any, ...]:
    """Changes whenever a file of a page does. Stats only; reads nothing."""
    return tuple(_marks(directory for _, directory in _candidates(project, [])))


def page_for(uri: str, pages: Iterable[Page]) -> Page | None:
    """The page that `ui://<server>/<name>` or `ui://<name>` means. Raises InvalidParams for what can be no page."""
    scheme, rest = uri[: len(SCHEME)], uri[len(SCHEME) :]
    segments = rest.split("/")
    if scheme.lower() != SCHEME or not segments[-1] or len(segments) > 2:
        raise InvalidParams("A page has a URI of the form ui://<server>/<name>.")
    name = _decoded(segments[-1])
    if name in (".", "..") or any(character in name for character in "/\\\0"):
        raise InvalidParams("A page is named by a URI of the form ui://<server>/<name>, without a path.")
    return next((page for page in pages if page.name == name), None)


def page_html(page: Page, *, limit_bytes: int) -> bytes:
    """The document, in UTF-8. Raises ProjectError if it cannot be made, OutputTooLarge if it is too long."""
    if page.entry is not None:
        content = _content_of(page, page.entry, limit_bytes)
    else:
        from mcpgreen.catalog.apps import templates

        assert page.template is not None, "a page has a file or a template"
        title = page.definition.get("title") or page.name
        content = templates.render(page.template, page.config, title=title).encode("utf-8")
    if len(content) > limit_bytes:
        raise OutputTooLarge(f"The page {page.name} is larger than {limit_bytes} bytes (max_ui_resource_bytes).")
    return content


def page_beside(script: str, pages: Iterable[Page]) -> Page | None:
    """The page in the directory `ui` beside a script."""
    directory = os.path.join(os.path.dirname(script), "ui")
    return next((page for page in pages if page.directory == directory), None)


def with_ui(tool_meta: dict[str, Any] | None, *, page_uri: str | None) -> dict[str, Any]:
    """The `_meta` of a tool that has a page: what the author wrote, and what he left open. Without a page
    (`page_uri` None) only the old place of the URI is put right."""
    meta = dict(tool_meta or {})
    ui = dict(meta["ui"]) if is_object(meta.get("ui")) else {}
    uri = ui.get("resourceUri") or meta.get(FLAT_KEY) or page_uri
    meta.pop(FLAT_KEY, None)
    if not uri:
        return meta
    ui["resourceUri"] = uri
    if not ui.get("visibility"):
        ui["visibility"] = list(VISIBILITY)
    return {**meta, "ui": ui}


def _candidates(project: Project, warnings: list[str]) -> Iterator[tuple[str, str]]:
    """Names and directories that may hold a page."""
    for name, path in _directories_in(project, project.tools_dir, []):  # what is wrong with tools/ is told elsewhere
        below = os.path.join(path, "ui")
        if _is_directory(project, below, warnings):
            yield name, below
    yield from _directories_in(project, project.ui_dir, warnings)


def _directories_in(project: Project, parent: str, warnings: list[str]) -> list[tuple[str, str]]:
    try:
        names = sorted(os.listdir(parent))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError:
        warnings.append(f"{project.shown(parent)}: the directory may not be read")
        return []
    found = []
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(".") or not _is_directory(project, path, warnings):
            continue
        if name.isprintable():
            found.append((name, path))
        else:
            warnings.append(Loss(f"{project.shown(path)!a}: skipped, its name has characters that cannot be shown"))
    return found


def _is_directory(project: Project, path: str, warnings: list[str]) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode) and os.path.isdir(path):
        warnings.append(f"{project.shown(path)}: a symbolic link to a directory is not followed")
    return stat.S_ISDIR(mode)


def _marks(directories: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    pending = list(directories)
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    # What a build leaves behind is not served, and there may be a lot of it.
                    if entry.name.startswith(".") or entry.name == "node_modules":
                        continue
                    status = entry.stat(follow_symlinks=False)
                    yield entry.path, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(entry.path)
        except (FileNotFoundError, PermissionError):
            yield directory, None


def _page_in(directory: str, name: str, server_name: str, *, warnings: list[str], project: Project) -> Page | None:
    source = os.path.join(directory, DESCRIPTION)
    has_description = os.path.lexists(source)
    if not has_description and not os.path.lexists(os.path.join(directory, DEFAULT_ENTRY)):
        return None
    fields: dict[str, Any] = {}
    if has_description:
        _require_plain_file(directory, DESCRIPTION, source)
        fields = {key: value for key, value in metadata.read_meta_file(source).items() if value is not None}
    _require(source, FIELD_RULES, fields, "")
    complaints: list[str] = []
    ui = _ui_meta(source, fields.get("meta", {}), complaints)
    warnings.extend(f"{project.shown(source)}: {complaint}" for complaint in complaints)
    template, config = fields.get("template"), fields.get("config", {})
    entry = _entry_in(directory, fields.get("entrypoint", DEFAULT_ENTRY), source)
    if entry is None:
        _require_usable_template(source, template, config, fields.get("entrypoint", DEFAULT_ENTRY))
    uri = f"{SCHEME}{_encoded(server_name)}/{_encoded(name)}"
    owner = "the tool " if is_within(directory, project.tools_dir) else ""
    definition: dict[str, Any] = {"name": name, "uri": uri}
    definition.update((key, fields[key]) for key in ("title", "description") if fields.get(key))
    definition.setdefault("description", f"The page of {owner}{name}")
    definition["mimeType"] = MIME_TYPE
    definition["_meta"] = {"ui": ui}
    return Page(name, uri, directory, entry, template, config, definition)


def _require_usable_template(source: str, template: str | None, config: dict[str, Any], entrypoint: str) -> None:
    if template is None:
        raise ProjectError(source, f"there is no {entrypoint}, and no template is named")
    from mcpgreen.catalog.apps import templates

    found = templates.problems(template, config)
    if found:
        raise ProjectError(source, "; ".join(found))


def _ui_meta(source: str, given: dict[str, Any], complaints: list[str]) -> dict[str, Any]:
    """`_meta.ui` of the page: what was given, or the defaults, in the shape that hosts read."""
    given = {key: value for key, value in given.items() if value is not None}
    _require(source, META_RULES, given, "meta.")
    csp = _known(given.get("csp", {}), CSP_FIELDS, "meta.csp.", complaints)
    _require(source, dict.fromkeys(CSP_FIELDS, DOMAINS), csp, "meta.csp.")
    permissions = _known(given.get("permissions", {}), PERMISSIONS, "meta.permissions.", complaints)
    _require(source, dict.fromkeys(PERMISSIONS, AN_OBJECT_OR_BOOLEAN), permissions, "meta.permissions.")
    # An object asks for the permission, and so does true; hosts know objects only.
    wanted = {key: value if is_object(value) else {} for key, value in permissions.items() if value is not False}
    ui = {"csp": csp, "permissions": wanted, "prefersBorder": given.get("prefersBorder", True)}
    return {**ui, "domain": given["sandboxDomain"]} if given.get("sandboxDomain") else ui


def _known(given: dict[str, Any], known: Sequence[str], prefix: str, complaints: list[str]) -> dict[str, Any]:
    for key in given:
        if key not in known:
            complaints.append(f"{prefix}{key} is unknown and left out; known are {', '.join(known)}")
    return {key: given[key] for key in known if given.get(key) is not None}


def _require(source: str, rules: dict[str, Rule], given: dict[str, Any], prefix: str) -> None:
    for key, rule in rules.items():
        if key in given and not rule.accepts(given[key]):
            raise ProjectError(source, f"{prefix}{key} must be {rule.wanted}")


def _entry_in(directory: str, entrypoint: str, source: str) -> str | None:
    """The path of the HTML file, or None if there is none."""
    if os.path.isabs(entrypoint) or ".." in entrypoint.split("/") or "\0" in entrypoint or "\\" in entrypoint:
        raise ProjectError(source, "entrypoint must be a file in the directory of the page")
    if entrypoint.startswith(".") or "/." in entrypoint:
        raise ProjectError(source, "entrypoint must not be hidden: what begins with a dot is never served")
    path = os.path.normpath(os.path.join(directory, entrypoint))
    if not os.path.lexists(path):
        return None
    _require_plain_file(directory, entrypoint, source)
    return path


def _require_plain_file(directory: str, name: str, source: str) -> None:
    path = os.path.normpath(os.path.join(directory, name))
    if os.path.realpath(path) != path:
        raise ProjectError(source, f"{name} is a symbolic link, or lies behind one; put the file itself there")
    if not os.path.isfile(path):
        raise ProjectError(source, f"{name} is not a file")


def _content_of(page: Page, path: str, limit_bytes: int) -> bytes:
    name = os.path.relpath(path, page.directory)
    try:
        if os.path.realpath(path) != path:
            raise ProjectError(page.uri, f"{name} is a symbolic link, or lies behind one")
        # A FIFO in the place of the file must not stop us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ProjectError(page.uri, f"{name} is not a file")
            content = file.read(limit_bytes + 1)
        if len(content) <= limit_bytes:
            content.decode("utf-8")
    except OSError as error:
        raise ProjectError(page.uri, f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ProjectError(page.uri, f"{name} is not UTF-8") from None
    return content


def _encoded(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return "".join(chr(byte) if byte in SAFE_BYTES and byte != SLASH else f"%{byte:02X}" for byte in raw)


def _decoded(text: str) -> str:
    raw = _ENCODED.sub(lambda match: bytes([int(match.group(1), 16)]), text.encode("utf-8", "replace"))
    return raw.decode("utf-8", "replace")
