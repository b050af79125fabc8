"""Read a project's resources: every file below resources/, and the templates that are described there.

Every file is a resource; its description may give it another URI. A description without a file is a resource if it has
a `uri`, and a template if it has a `uriTemplate`. Providers read the content.

Rule: one bad description costs one item and a warning, never the list. Equal names are allowed, equal URIs not.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from mcpgreen.catalog.apps.resources import App
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import A_STRING, AN_OBJECT, Origin, Rule
from mcpgreen.catalog.items import Discovery, ItemFile, distinct, leave_out_readme, read_files
from mcpgreen.catalog.schemes import PROVIDER_OF_SCHEME
from mcpgreen.catalog.tree_scan import Loss, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.text import media
from mcpgreen.text.json_types import Json
from mcpgreen.text.uri_templates import UriTemplate
from mcpgreen.text.uris import file_uri, problem_with, scheme_of, with_encoded_text

DEFAULT_PROVIDER = "file"


class Resource(NamedTuple):
    """Something with a URI. `path` is its file below resources/, if it has one."""

    name: str
    uri: str
    provider: str
    mime_type: str | None  # as declared; else the content decides
    definition: Json
    registry_entry: Json
    path: str | None = None
    relative_path: str = ""
    is_described: bool = True  # a described resource replaces the plain file with the same URI


class ResourceTemplate(NamedTuple):
    """A family of URIs. `path` is the file that describes it, if one does."""

    name: str
    template: UriTemplate
    provider: str
    mime_type: str | None
    definition: Json
    registry_entry: Json
    arguments: Json  # the schemas of its variables, for completion
    path: str | None = None
    relative_path: str = ""


AnyResource = Resource | ResourceTemplate
Placed = TypeVar("Placed", Resource, ResourceTemplate)

FIELD_RULES = {
    **metadata.COMMON_RULES,
    "name": A_STRING,
    "uri": A_STRING,
    "uriTemplate": A_STRING,
    "mimeType": A_STRING,
    "size": Rule(metadata.is_natural, "a number of bytes", {"type": "integer", "minimum": 0}),
    "provider": Rule(
        lambda value: isinstance(value, str) and value.replace("-", "").replace("_", "").isalnum(),
        "a name made of letters, digits, _ and -",
        {"type": "string"},
    ),
    "arguments": AN_OBJECT,
}
KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path"}


def discover_resources(project: Project, tree: Tree, *, instead: Discovery | None = None) -> dict[str, Discovery]:
    """Read the resources in a tree, sorted by name and URI, and the templates, sorted by name.

    `instead` are registered resources: then only the templates are read.
    """
    below, read = tree.below(project.resources_dir), _item_of
    if instead is not None:
        below, read = below._replace(memory={}, earlier={}), _template_of
    items, more, hints = read_files(project, below, metadata.item_sources, read, "the resource")
    warnings = [*below.warnings_with_links(project, "resources"), *more]
    found = sorted(items, key=lambda item: (item.name, item.definition.get("uri", ""), item.relative_path))
    resources = [item for item in found if isinstance(item, Resource)]
    by_uri = {item.uri: item for item in reversed(resources) if item.is_described}
    plain = {item.uri: item for item in resources if not item.is_described}  # each has another URI
    for uri in sorted(by_uri.keys() & plain.keys()):
        first, place = by_uri[uri], f"{project.shown(project.resources_dir)}/{plain[uri].relative_path}"
        hints.append(f"{place}: listed as {first.name}, because {first.relative_path} describes the same uri")
    counting = (item._replace(is_described=True) for item in resources if item.is_described or item.uri not in by_uri)
    kept, doubles = distinct(counting, "uri", "has the uri")
    if instead is not None:
        kept, hints = list(instead.items), instead.hints
    taken = {item.name for item in kept}
    templates = [item for item in found if isinstance(item, ResourceTemplate)]
    hidden = (item for item in templates if item.name in taken)
    doubles += [f"{item.relative_path}: skipped because a resource already has the name {item.name}" for item in hidden]
    free = (item for item in templates if item.name not in taken)
    kept_templates, more_doubles = distinct(free, "name", "provides the template")
    warnings += [Loss(f"{project.shown(project.resources_dir)}/{double}") for double in (*doubles, *more_doubles)]
    warnings += instead.warnings if instead is not None else ()
    return {"resources": Discovery(kept, warnings, hints), "resourceTemplates": Discovery(kept_templates, [])}


def provider_of(uri: str) -> str:
    """Return the provider of a URI without a `provider`: a built-in one, or the script with the name of the scheme."""
    scheme = scheme_of(uri)
    return PROVIDER_OF_SCHEME.get(scheme, scheme) or DEFAULT_PROVIDER


def describe_resource(origin: Origin, fields: Json, *, default_name: str = "", default_uri: str = "") -> Resource:
    """Return the resource that the `fields` describe. Raises ProjectError if it cannot be served."""
    fields = metadata.checked(origin.path, fields, FIELD_RULES)
    uri = with_encoded_text(fields.get("uri") or default_uri)
    fault = problem_with(uri) if uri else "it is missing"
    if fault:
        raise ProjectError(origin.path, f"uri: {fault}")
    named = {"name": fields.get("name") or default_name, "uri": uri}
    return Resource(uri=uri, **_described(origin, fields, named, provider_of(uri), plain=("mimeType", "size")))


def describe_template(origin: Origin, fields: Json, *, default_name: str = "") -> ResourceTemplate:
    """Return the template that the `fields` describe. Raises ProjectError if it cannot be served."""
    fields = metadata.checked(origin.path, fields, FIELD_RULES)
    if fields.get("uri"):
        raise ProjectError(origin.path, "has both uri and uriTemplate")
    try:
        template = UriTemplate(fields["uriTemplate"])
    except ValueError as error:
        raise ProjectError(origin.path, f"uriTemplate: {error}") from error
    named = {"name": fields.get("name") or default_name, "uriTemplate": template.text}
    described = _described(origin, fields, named, provider_of(template.text), plain=("mimeType",))
    schema = fields.get("inputSchema") or fields.get("arguments") or {}
    properties = schema.get("properties", schema)
    arguments = properties if isinstance(properties, dict) else {}
    return ResourceTemplate(template=template, arguments=arguments, path=origin.path, **described)


def resource_of_app(project: Project, app: App) -> Resource:
    """Return the resource by which clients list and read an MCP App."""
    place = project.shown(app.directory)
    entry = {"description": "", **app.definition, "provider": "ui", "path": place}
    mime_type = app.definition["mimeType"]
    return Resource(app.name, app.uri, "ui", mime_type, app.definition, entry, relative_path=place)


def _template_of(file: ItemFile) -> ResourceTemplate | None:
    item = _item_of(file)
    if isinstance(item, ResourceTemplate):
        return item
    file.origin.complaints.clear()
    return None


def _item_of(file: ItemFile) -> AnyResource | None:
    if leave_out_readme(file, "resource"):
        return None
    path, origin = file.path, file.origin
    relative_path = path.removeprefix(file.project.resources_dir.rstrip("/") + "/")
    inline = None if file.has_description else metadata.read_inline_of(path, is_prose=True)
    fields = metadata.read_meta_file(origin.path) if file.has_description else inline or {}
    default_name = metadata.described_stem(file.name)
    if fields.get("uriTemplate") is not None:
        return _placed(describe_template(origin, fields, default_name=default_name), origin.path, relative_path)
    default_uri = "" if file.is_description else file_uri(path)
    item = describe_resource(origin, fields, default_name=default_name, default_uri=default_uri)
    if file.is_description:
        return _placed(item, None, relative_path)
    if "provider" not in fields and scheme_of(item.uri) not in PROVIDER_OF_SCHEME:
        # A scheme of the author's own for a file of the project.
        entry = {**item.registry_entry, "provider": DEFAULT_PROVIDER}
        item = item._replace(provider=DEFAULT_PROVIDER, registry_entry=entry)
    if item.provider == DEFAULT_PROVIDER:
        item.definition.setdefault("mimeType", mime_type_of(path))
        item.definition["size"] = file.directory.files[file.name].st_size
    return _placed(item._replace(is_described=bool(fields)), path, relative_path)


def mime_type_of(path: str) -> str:
    try:
        # The file is only opened if its name does not show the type.
        return media.type_by_name(path) or media.mime_type("", metadata.read_start(path, media.HEAD_BYTES), None)
    except OSError:
        return media.BINARY


def _placed(item: Placed, path: str | None, relative_path: str) -> Placed:
    entry = {**item.registry_entry, **item.definition, "path": relative_path}
    return item._replace(path=path, relative_path=relative_path, registry_entry=entry)


def _described(origin: Origin, fields: Json, named: Json, provider: str, *, plain: tuple[str, ...]) -> Json:
    """Return the fields that resources and templates share. The description may name another provider."""
    definition = metadata.definition_of(origin, named, fields, plain=plain, known=KNOWN_FIELDS)
    listed = KNOWN_FIELDS - {"arguments", "inputSchema"}
    others = {key: value for key, value in fields.items() if key not in listed}
    provider = fields.get("provider") or provider
    return {
        "name": definition["name"],
        "provider": provider,
        "mime_type": fields.get("mimeType"),
        "definition": definition,
        "registry_entry": {"description": "", **definition, "provider": provider, **others},
    }
