"""Read the resources of a project: each file below resources/, and the templates that descriptions there declare.

A file is a resource whether it is described or not; its description may give it another address. A description without
a file is a resource if it has a `uri`, a template if it has a `uriTemplate`. The content is the provider's business.

Rule: one bad description costs one item and a warning, never the list. Equal names are allowed, equal addresses not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from mcpgreen.catalog.apps.resources import Page
from mcpgreen.catalog.descriptions import metadata
from mcpgreen.catalog.descriptions.metadata import A_STRING, AN_OBJECT, Origin, Rule
from mcpgreen.catalog.items import Discovery, Loss
from mcpgreen.catalog.schemes import PROVIDER_OF_SCHEME
from mcpgreen.catalog.tree_scan import Directory, Tree
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.text import media
from mcpgreen.text.uri_templates import UriTemplate
from mcpgreen.text.uris import file_uri, problem_with, scheme_of, with_encoded_text

DEFAULT_PROVIDER = "file"


class Resource(NamedTuple):
    """Something with an address. `path` is its file below resources/, if it has one."""

    name: str
    uri: str
    provider: str
    mime_type: str | None  # as declared; else the content decides
    path: str | None
    relative_path: str
    definition: dict[str, Any]
    registry_entry: dict[str, Any]


class ResourceTemplate(NamedTuple):
    """A family of addresses. `path` is the file that describes it, if one does."""

    name: str
    template: UriTemplate
    provider: str
    mime_type: str | None
    path: str | None
    arguments: dict[str, Any]  # the schemas of its variables, for completion
    relative_path: str
    definition: dict[str, Any]
    registry_entry: dict[str, Any]


FIELD_RULES = {
    "name": A_STRING,
    "title": A_STRING,
    "description": A_STRING,
    "uri": A_STRING,
    "uriTemplate": A_STRING,
    "mimeType": A_STRING,
    "size": Rule(metadata.is_natural, "a number of bytes"),
    "provider": Rule(
        lambda value: metadata.is_string(value) and value.replace("-", "").replace("_", "").isalnum(),
        "a name of letters, digits, _ and -",
    ),
    "arguments": AN_OBJECT,
    "inputSchema": AN_OBJECT,
    "annotations": AN_OBJECT,
    "_meta": AN_OBJECT,
}
SCHEMA_FIELDS = ("arguments", "inputSchema")
KNOWN_FIELDS = frozenset(FIELD_RULES) | {"icons", "path"}


def discover_resources(project: Project, tree: Tree, *, instead: Discovery | None = None) -> dict[str, Discovery]:
    """Read what the walk through resources/ saw: resources by name and address, templates by name.

    `instead` are the resources that are offered in place of those: then it is only about the templates.
    """
    warnings = [
        *tree.warnings,
        *(
            Loss(f"{project.shown(link.path)}: skipped, it links to a file outside resources/")
            for link in tree.links_out
        ),
    ]
    resources: list[Resource] = []
    templates: list[ResourceTemplate] = []
    for directory in tree.below(project.resources_dir):
        for file_name in tree.pace.over(metadata.item_sources(directory.files)):
            try:
                item, complaints = _item_of(project, directory, file_name)
            except ProjectError as error:
                warnings.append(Loss(f"{project.shown(error.path)}: {error.reason}; it is left out"))
                continue
            if not isinstance(item, Resource):
                templates.append(item)
            elif instead is None:
                resources.append(item)
            else:
                continue
            warnings.extend(f"{project.shown(directory.path)}/{file_name}: {complaint}" for complaint in complaints)
    doubles: list[str] = []
    kept = list(instead.items) if instead is not None else distinct_resources(resources, doubles)
    kept_templates = distinct_templates(templates, {item.name for item in kept}, doubles)
    warnings += [Loss(f"{project.shown(project.resources_dir)}/{double}") for double in doubles]
    if instead is not None:
        warnings += instead.warnings
    return {"resources": Discovery(kept, warnings), "resourceTemplates": Discovery(kept_templates, [])}


def provider_of(uri: str) -> str:
    """Who reads an address if nobody says it: one of ours, or a script that is named as the scheme."""
    scheme = scheme_of(uri)
    return PROVIDER_OF_SCHEME.get(scheme, scheme) or DEFAULT_PROVIDER


def describe_resource(
    origin: Origin, fields: dict[str, Any], *, default_name: str = "", default_uri: str = ""
) -> Resource:
    """What the `fields` of a description say. Raises ProjectError for what cannot be served."""
    fields = metadata.checked(origin.path, fields, FIELD_RULES)
    uri = with_encoded_text(fields.get("uri") or default_uri)
    fault = problem_with(uri) if uri else "it is missing"
    if fault:
        raise ProjectError(origin.path, f"uri: {fault}")
    definition = _definition(origin, fields, {"name": fields.get("name") or default_name, "uri": uri})
    provider = fields.get("provider") or provider_of(uri)
    return Resource(
        name=definition["name"],
        uri=uri,
        provider=provider,
        mime_type=fields.get("mimeType"),
        path=None,
        relative_path="",
        definition=definition,
        registry_entry=_registry_entry(definition, provider, fields),
    )


def describe_template(origin: Origin, fields: dict[str, Any], *, default_name: str = "") -> ResourceTemplate:
    """As `describe_resource`, for a description with a `uriTemplate`."""
    fields = metadata.checked(origin.path, fields, FIELD_RULES)
    if fields.get("uri"):
        raise ProjectError(origin.path, "has both uri and uriTemplate")
    try:
        template = UriTemplate(fields["uriTemplate"])
    except ValueError as error:
        raise ProjectError(origin.path, f"uriTemplate: {error}") from error
    named = {"name": fields.get("name") or default_name, "uriTemplate": template.text}
    definition = _definition(origin, fields, named)
    provider = fields.get("provider") or provider_of(template.text)
    schema = fields.get("inputSchema") or fields.get("arguments") or {}
    properties = schema.get("properties", schema)
    return ResourceTemplate(
        name=definition["name"],
        template=template,
        provider=provider,
        mime_type=fields.get("mimeType"),
        path=origin.path,
        arguments=properties if isinstance(properties, dict) else {},
        relative_path="",
        definition=definition,
        registry_entry=_registry_entry(definition, provider, fields),
    )


def resource_of_page(project: Project, page: Page) -> Resource:
    """A page as the resource that clients list and read."""
    place = project.shown(page.directory)
    return Resource(
        name=page.name,
        uri=page.uri,
        provider="ui",
        mime_type=page.definition["mimeType"],
        path=None,
        relative_path=place,
        definition=page.definition,
        registry_entry={"description": "", **page.definition, "provider": "ui", "path": place},
    )


def distinct_resources(found: Iterable[Resource], warnings: list[str]) -> list[Resource]:
    """The first of each address: clients read by it."""
    kept: dict[str, Resource] = {}
    for item in sorted(found, key=lambda item: (item.name, item.uri, item.relative_path)):
        first = kept.setdefault(item.uri, item)
        if first is not item:
            warnings.append(f"{item.relative_path}: skipped, {first.relative_path} already has the uri {item.uri}")
    return list(kept.values())


def distinct_templates(
    found: Iterable[ResourceTemplate], taken: set[str], warnings: list[str]
) -> list[ResourceTemplate]:
    kept: dict[str, ResourceTemplate] = {}
    for item in sorted(found, key=lambda item: (item.name, item.relative_path)):
        if item.name in taken:
            warnings.append(f"{item.relative_path}: skipped, a resource already has the name {item.name}")
        elif kept.setdefault(item.name, item) is not item:
            first = kept[item.name].relative_path
            warnings.append(f"{item.relative_path}: skipped, {first} already provides the template {item.name}")
    return list(kept.values())


def _item_of(project: Project, directory: Directory, file_name: str) -> tuple[Resource | ResourceTemplate, list[str]]:
    path = f"{directory.path}/{file_name}"
    relative_path = path.removeprefix(project.resources_dir.rstrip("/") + "/")
    is_lonely = metadata.is_description(file_name)
    meta_file = file_name if is_lonely else metadata.meta_file_for(file_name, directory.files)
    source = f"{directory.path}/{meta_file}" if meta_file else path
    fields = metadata.read_meta_file(source) if meta_file else metadata.read_inline_of(path, is_prose=True) or {}
    default_name = metadata.described_stem(file_name) if is_lonely else metadata.stem_of(file_name)
    origin = Origin(source, project.private, [])
    if fields.get("uriTemplate") is not None:
        template = describe_template(origin, fields, default_name=default_name)
        return _placed(template, source, relative_path), origin.complaints
    item = describe_resource(origin, fields, default_name=default_name, default_uri="" if is_lonely else file_uri(path))
    if is_lonely:
        return _placed(item, None, relative_path), origin.complaints
    if "provider" not in fields and scheme_of(item.uri) not in PROVIDER_OF_SCHEME:
        # A name of the author's own for a file that is here.
        entry = {**item.registry_entry, "provider": DEFAULT_PROVIDER}
        item = item._replace(provider=DEFAULT_PROVIDER, registry_entry=entry)
    if item.provider == DEFAULT_PROVIDER:
        item.definition.setdefault("mimeType", _mime_type(path))
        item.definition["size"] = directory.files[file_name].st_size
    return _placed(item, path, relative_path), origin.complaints


def _mime_type(path: str) -> str:
    name = os.path.basename(path)
    by_name = media.type_by_name(name)
    if by_name is not None:
        return by_name
    try:
        return media.mime_type(name, metadata.read_start(path, media.HEAD_BYTES), None)
    except OSError:
        return media.BINARY


def _placed(item: Any, path: str | None, relative_path: str) -> Any:
    entry = {**item.registry_entry, **item.definition, "path": relative_path}
    return item._replace(path=path, relative_path=relative_path, registry_entry=entry)


def _definition(origin: Origin, fields: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    definition = dict(named)
    for key in ("title", "description", "mimeType", "size"):
        if key in fields and (key != "size" or "uri" in named):
            definition[key] = fields[key]
    metadata.decorate(definition, fields, origin)
    origin.complaints.extend(metadata.likely_typos(fields, KNOWN_FIELDS, ""))
    return definition


def _registry_entry(definition: dict[str, Any], provider: str, fields: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in fields.items() if key not in KNOWN_FIELDS or key in SCHEMA_FIELDS}
    return {"description": "", **definition, "provider": provider, **kept}
