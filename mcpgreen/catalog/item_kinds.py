"""The table of item kinds: where each kind comes from, how it is read, and what it is called.

A kind that the project registers by hand is not looked for on disk. Only templates are found in both places, and a
registered template replaces one on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.manual.registration import Registration
from mcpgreen.catalog.tools import discover_tools, refusals
from mcpgreen.catalog.tree_scan import Memory, Pace, Tree, survey
from mcpgreen.project.project import Project


class Source(NamedTuple):
    """Where items come from: the directories to walk, and the function that reads the files and the registration.
    `look_at_more` walks through further files that the items depend on."""

    directories: Callable[[Project], list[str]]
    read: Callable[[Project, Tree, Registration | None], dict[str, Discovery]]
    kinds: tuple[str, ...]
    look_at_more: Callable[[Project, Pace], Tree] | None = None


def look_at_disk(
    project: Project, source: Source, registered: str | None, *, only_below: str | None, pace: Pace, earlier: Memory
) -> Tree:
    """Walk through the directories of a source; the files are then read with the memory of an `earlier` scan. The
    fingerprint covers everything that the listing depends on, also `registered`, the hash of the registration."""
    tree = survey(project, source.directories(project), only_below=only_below, pace=pace)
    more = source.look_at_more(project, pace) if source.look_at_more is not None else tree
    return tree._replace(
        fingerprint=(registered, tree.fingerprint, more.fingerprint),
        is_settled=tree.is_settled and more.is_settled,
        earlier=earlier,
    )


def registry_file(project: Project, kind: str) -> str:
    """Return the path of the file that lists the items of a kind."""
    return os.path.join(project.registry_dir, FILE_OF.get(kind, kind) + ".json")


# Each kind is imported when it is first read: most clients ask for tools first, and many for nothing else.


def _registered_items(project: Project, registration: Registration | None, kind: str) -> Discovery | None:
    if registration is None:
        return None
    from mcpgreen.catalog.manual.items import registered_items

    return registered_items(project, registration, kind)


def _read_tools(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    found = _registered_items(project, registration, "tools") or discover_tools(project, tree)
    # Warnings about the registration itself come here, once for all kinds.
    warnings = registration.warnings if registration is not None else ()
    refused = refusals(project, found.items, tree.pace)
    return {"tools": found._replace(warnings=[*warnings, *found.warnings, *refused])}


def _read_prompts(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.prompts import discover_prompts

    below = tree.below(project.prompts_dir)
    found = _registered_items(project, registration, "prompts") or discover_prompts(project, below)
    of_skills = tree.below(project.skills_dir)
    if project.skills_as_prompts and of_skills.directories:
        from mcpgreen.catalog.skills import discover_prompts_of_skills

        more = discover_prompts_of_skills(project, of_skills)
        taken = {item.name for item in found.items}
        items = [*found.items, *(item for item in more.items if item.name not in taken)]
        found = Discovery(items, [*found.warnings, *more.warnings], found.hints)
    return {"prompts": found}


def _read_resources(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    """Read resources, templates and apps. Registered templates are added to those on disk, and count before one of the
    same name; an empty list of them means that there are none."""
    from mcpgreen.catalog.apps.resources import discover_apps
    from mcpgreen.catalog.resources import discover_resources, resource_of_app

    instead = _registered_items(project, registration, "resources")
    by_hand = _registered_items(project, registration, "resourceTemplates")
    of_skills = tree.below(project.skills_dir)
    found = discover_resources(project, tree, instead=instead)
    resources, templates = found["resources"], found["resourceTemplates"]
    if registration is not None and by_hand is not None:
        registered = {item.name for item in by_hand.items}
        if not registration.items["resourceTemplates"]:
            templates, resources = by_hand, instead or resources
        else:
            kept = [item for item in templates.items if item.name not in registered]
            lost = [item for item in templates.items if item.name in registered]
            reason = f"{registration.source} registers a template of the same name, which takes precedence"
            hints = [f"resources/{item.relative_path}: {reason}" for item in lost]
            items = sorted([*kept, *by_hand.items], key=lambda item: str(item.name))
            templates = Discovery(items, [*templates.warnings, *by_hand.warnings], [*templates.hints, *hints])
    apps, warnings = discover_apps(project, project.server_name(), tree.pace)
    listed = [resource_of_app(project, app) for app in apps]
    taken = {item.uri for item in resources.items}
    others = [app for app in listed if app.uri not in taken]
    skills = Discovery([], [])
    if of_skills.directories:
        from mcpgreen.catalog.skills import discover_skills

        skills = discover_skills(project, of_skills)
        others += [file for skill in skills.items for file in skill.files.values() if file.uri not in taken]
    resources = Discovery([*resources.items, *others], [*resources.warnings, *warnings], resources.hints)
    return {"resources": resources, "resourceTemplates": templates, "ui": Discovery(listed, []), "skills": skills}


def _look_at_apps(project: Project, pace: Pace) -> Tree:
    from mcpgreen.catalog.apps.resources import look_at_apps

    return look_at_apps(project, pace)


# By the name in notifications of changes. Kinds that are read together change together.
SOURCES = {
    "tools": Source(lambda project: [project.tools_dir], _read_tools, ("tools",)),
    "resources": Source(
        lambda project: [project.resources_dir, project.ui_dir, project.skills_dir],
        _read_resources,
        ("resources", "resourceTemplates", "ui", "skills"),
        _look_at_apps,
    ),
    "prompts": Source(
        lambda project: [project.prompts_dir, *([project.skills_dir] if project.skills_as_prompts else [])],
        _read_prompts,
        ("prompts",),
    ),
}
SOURCE_OF = {kind: name for name, source in SOURCES.items() for kind in source.kinds}
# Other kinds have files of their own names.
FILE_OF = {"resourceTemplates": "resource-templates", "ui": "ui-resources"}
TITLE_OF = {  # of the kinds that are stored in files of the registry
    "tools": "tool registry",
    "resources": "resources registry",
    "resourceTemplates": "resource templates registry",
    "prompts": "prompts registry",
    "ui": "resources registry",
}
