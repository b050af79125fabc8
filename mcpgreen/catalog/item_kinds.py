"""The kinds of items, one table: where each comes from, how it is read, and what it is called.

A kind that the project registers by hand is not looked for on disk; templates are, and what is registered wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.rules import Registration
from mcpgreen.catalog.tree_scan import Tree
from mcpgreen.project.project import Project


class Source(NamedTuple):
    """Where items come from: the directories that are walked, the reading of what the walk saw and of what is
    registered, by kind, and what else besides tells that something changed."""

    directories: Callable[[Project], list[str]]
    read: Callable[[Project, Tree, Registration | None], dict[str, Discovery]]
    kinds: tuple[str, ...]
    more_marks: Callable[[Project], tuple[Any, ...]] = lambda project: ()


def _read_tools(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    if registration is None:
        return {"tools": _found_tools(project, tree)}
    items = registration.of("tools")
    if items is None:
        found = _found_tools(project, tree)
    else:
        from mcpgreen.catalog.manual.items import registered_tools

        found = registered_tools(project, registration, items)
    # What is wrong with the registration itself is told here, once for all kinds.
    return {"tools": found._replace(warnings=[*registration.warnings, *found.warnings])}


def _found_tools(project: Project, tree: Tree) -> Discovery:
    from mcpgreen.catalog.tools import discover_tools

    return discover_tools(project, tree)


def _read_prompts(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    items = registration.of("prompts") if registration is not None else None
    if registration is None or items is None:
        from mcpgreen.catalog.prompts import discover_prompts

        return {"prompts": discover_prompts(project, tree)}
    from mcpgreen.catalog.manual.items import registered_prompts

    return {"prompts": registered_prompts(project, registration, items)}


def _read_resources(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.apps.resources import discover_pages
    from mcpgreen.catalog.resources import discover_resources, resource_of_page

    found = discover_resources(project, tree) if registration is None else _with_registered(project, tree, registration)
    pages, warnings = discover_pages(project, project.server_name())
    listed = [resource_of_page(project, page) for page in pages]
    resources = found["resources"]
    taken = {item.uri for item in resources.items}
    others = [page for page in listed if page.uri not in taken]
    return {
        **found,
        "resources": Discovery([*resources.items, *others], [*resources.warnings, *warnings]),
        "ui": Discovery(listed, []),
    }


def _with_registered(project: Project, tree: Tree, registration: Registration) -> dict[str, Discovery]:
    from mcpgreen.catalog.manual.items import registered_resources, registered_templates
    from mcpgreen.catalog.resources import discover_resources

    resources, templates = registration.of("resources"), registration.of("resourceTemplates")
    instead = registered_resources(project, registration, resources) if resources is not None else None
    if instead is not None and templates == []:
        return {"resources": instead, "resourceTemplates": Discovery([], [])}
    found = discover_resources(project, tree, instead=instead)
    if templates == []:
        found["resourceTemplates"] = Discovery([], [])
    elif templates is not None:
        by_hand = registered_templates(project, registration, templates)
        found["resourceTemplates"] = _merged(found["resourceTemplates"], by_hand, registration.source)
    return found


def _merged(found: Discovery, by_hand: Discovery, source: str) -> Discovery:
    """Templates of both, by name. What is registered counts."""
    registered = {item.name for item in by_hand.items}
    kept = [item for item in found.items if item.name not in registered]
    hints = [
        f"resources/{item.relative_path}: {source} registers a template of the same name, which counts"
        for item in found.items
        if item.name in registered
    ]
    items = sorted([*kept, *by_hand.items], key=lambda item: str(item.name))
    return Discovery(items, [*found.warnings, *by_hand.warnings], [*found.hints, *hints])


def _marks_of_pages(project: Project) -> tuple[Any, ...]:
    from mcpgreen.catalog.apps.resources import fingerprint

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
