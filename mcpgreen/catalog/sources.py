"""The kinds of items, one table: where each comes from, how it is read, and what it is called.

A kind that the project registers by hand is not looked for on disk; templates are, and what is registered wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.project import Project
from mcpgreen.catalog.registration import Registration
from mcpgreen.catalog.survey import Tree


class Source(NamedTuple):
    """Where items come from: the directories that are walked, the reading of what the walk saw and of what is
    registered, by kind, and what else besides tells that something changed."""

    directories: Callable[[Project], list[str]]
    read: Callable[[Project, Tree, Registration | None], dict[str, Discovery]]
    kinds: tuple[str, ...]
    more_marks: Callable[[Project], tuple[Any, ...]] = lambda project: ()


def _read_tools(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    items = registration.of("tools") if registration is not None else None
    if registration is None or items is None:
        from mcpgreen.catalog.tools import discover_tools

        return {"tools": discover_tools(project, tree)}
    from mcpgreen.catalog.registered import registered_tools

    found = registered_tools(project, registration, items)
    return {"tools": found._replace(warnings=[*registration.warnings, *found.warnings])}


def _read_prompts(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    items = registration.of("prompts") if registration is not None else None
    if registration is None or items is None:
        from mcpgreen.catalog.prompts import discover_prompts

        return {"prompts": discover_prompts(project, tree)}
    from mcpgreen.catalog.registered import registered_prompts

    return {"prompts": registered_prompts(project, registration, items)}


def _read_resources(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.resources import discover_resources, resource_of_page
    from mcpgreen.catalog.ui_pages import discover_pages

    found = discover_resources(project, tree)
    if registration is not None:
        found = _with_registered(found, registration)
    pages, warnings = discover_pages(project, project.server_name())
    listed = [resource_of_page(project, page) for page in pages]
    resources = found["resources"]
    return {
        **found,
        "resources": Discovery([*resources.items, *listed], [*resources.warnings, *warnings]),
        "ui": Discovery(listed, []),
    }


def _with_registered(found: dict[str, Discovery], registration: Registration) -> dict[str, Discovery]:
    from mcpgreen.catalog.registered import registered_resources, registered_templates

    resources, templates = registration.of("resources"), registration.of("resourceTemplates")
    if resources is not None:
        found = {**found, "resources": registered_resources(registration, resources)}
    if templates == []:
        found = {**found, "resourceTemplates": Discovery([], [])}
    elif templates is not None:
        by_hand = registered_templates(registration, templates)
        named = {item.name: item for item in [*found["resourceTemplates"].items, *by_hand.items]}
        merged = sorted(named.values(), key=lambda item: str(item.name))
        found = {**found, "resourceTemplates": Discovery(merged, by_hand.warnings)}
    return found


def _marks_of_pages(project: Project) -> tuple[Any, ...]:
    from mcpgreen.catalog.ui_pages import fingerprint

    return fingerprint(project)


# By the name under which clients hear of changes. What is read together changes together.
SOURCES = {
    "tools": Source(lambda project: [project.tools_dir], _read_tools, ("tools",)),
    "resources": Source(
        lambda project: [project.resources_dir, project.ui_dir],
        _read_resources,
        ("resources", "resourceTemplates", "ui"),
        _marks_of_pages,
    ),
    "prompts": Source(lambda project: [project.prompts_dir], _read_prompts, ("prompts",)),
}
SOURCE_OF = {kind: name for name, source in SOURCES.items() for kind in source.kinds}
# Other kinds are written under their own names.
FILE_OF = {"resourceTemplates": "resource-templates", "ui": "ui-resources"}
TITLE_OF = {
    "tools": "tool registry",
    "resources": "resources registry",
    "resourceTemplates": "resource templates registry",
    "prompts": "prompts registry",
    "ui": "resources registry",
}
