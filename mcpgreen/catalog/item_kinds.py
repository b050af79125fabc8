"""The kinds of items, one table: where each comes from, how it is read, and what it is called.

A kind that the project registers by hand is not looked for on disk; templates are, and what is registered wins.
"""

from __future__ import annotations

import os
import time

from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.pace import UNPACED, Pace
from mcpgreen.catalog.tree_scan import SETTLING_NS, Tree, survey
from mcpgreen.text.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgreen.catalog.manual.rules import Registration
    from mcpgreen.project.project import Project


class Source(NamedTuple):
    """Where items come from: the directories that are walked, the reading of what the walk saw and of what is
    registered, by kind, and what else is looked at to tell that something changed."""

    directories: Callable[[Project], list[str]]
    read: Callable[[Project, Tree, Registration | None], dict[str, Discovery]]
    kinds: tuple[str, ...]
    look_at_more: Callable[[Project, Pace], Tree] | None = None


def look_at_disk(
    project: Project,
    source: Source,
    *,
    registered: str | None = None,
    only_below: str | None = None,
    pace: Pace = UNPACED,
) -> Tree:
    """What is on disk for a source. Its fingerprint is that of all that its listing depends on, `registered` included:
    the hash of what is registered by hand."""
    tree = survey(project, source.directories(project), only_below=only_below, pace=pace)
    if source.look_at_more is None:
        return tree._replace(fingerprint=(registered, tree.fingerprint, ()))
    more = source.look_at_more(project, pace)
    return tree._replace(
        fingerprint=(registered, tree.fingerprint, more.fingerprint),
        is_settled=tree.is_settled and more.is_settled,
        age_ns=min(tree.age_ns, more.age_ns),
    )


def look_at_kept(project: Project, source: Source, *, pace: Pace = UNPACED) -> Tree:
    """The same where the files in `.registry/` decide: they count as well. Raises OSError if one is missing."""
    began_ns = time.time_ns()
    files = [os.stat(registry_file(project, kind)) for kind in source.kinds]
    stamps = tuple((each.st_mtime_ns, each.st_ctime_ns, each.st_size, each.st_mode, each.st_ino) for each in files)
    age_ns = began_ns - max(each.st_ctime_ns for each in files)
    tree = look_at_disk(project, source, pace=pace)
    return tree._replace(
        fingerprint=(stamps, tree.fingerprint),
        is_settled=tree.is_settled and age_ns > SETTLING_NS,
        age_ns=min(tree.age_ns, age_ns),
    )


def registry_file(project: Project, kind: str) -> str:
    """Where the listing of a kind is written for others."""
    return os.path.join(project.registry_dir, FILE_OF.get(kind, kind) + ".json")


def _registered(project: Project, registration: Registration | None, kind: str) -> Discovery | None:
    """None for a kind that is found by looking at the disk."""
    if registration is None:
        return None
    from mcpgreen.catalog.manual.items import registered_items

    return registered_items(project, registration, kind)


def _read_tools(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.tools import discover_tools

    found = _registered(project, registration, "tools") or discover_tools(project, tree)
    # What is wrong with the registration itself is told here, once for all kinds.
    warnings = registration.warnings if registration is not None else ()
    return {"tools": found._replace(warnings=[*warnings, *found.warnings])}


def _read_prompts(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.prompts import discover_prompts

    return {"prompts": _registered(project, registration, "prompts") or discover_prompts(project, tree)}


def _read_resources(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    from mcpgreen.catalog.apps.resources import discover_apps
    from mcpgreen.catalog.resources import resource_of_app

    found = _resources_and_templates(project, tree, registration)
    apps, warnings = discover_apps(project, project.server_name(), tree.pace)
    listed = [resource_of_app(project, app) for app in apps]
    resources = found["resources"]
    taken = {item.uri for item in resources.items}
    others = [app for app in listed if app.uri not in taken]
    return {
        **found,
        "resources": Discovery([*resources.items, *others], [*resources.warnings, *warnings]),
        "ui": Discovery(listed, []),
    }


def _resources_and_templates(project: Project, tree: Tree, registration: Registration | None) -> dict[str, Discovery]:
    """Registered templates join those on disk, unless an empty list is registered: then there are none."""
    from mcpgreen.catalog.resources import discover_resources

    instead = _registered(project, registration, "resources")
    templates = _registered(project, registration, "resourceTemplates")
    if registration is None or templates is None:
        return discover_resources(project, tree, instead=instead)
    if registration.items["resourceTemplates"]:
        found = discover_resources(project, tree, instead=instead)
        return {**found, "resourceTemplates": _merged(found["resourceTemplates"], templates, registration.source)}
    return {"resources": instead or discover_resources(project, tree)["resources"], "resourceTemplates": templates}


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


def _look_at_apps(project: Project, pace: Pace) -> Tree:
    from mcpgreen.catalog.apps.places import look_at_apps

    return look_at_apps(project, pace)


# By the name under which clients hear of changes. What is read together changes together.
SOURCES = {
    "tools": Source(lambda project: [project.tools_dir], _read_tools, ("tools",)),
    "resources": Source(
        lambda project: [project.resources_dir, project.ui_dir],
        _read_resources,
        ("resources", "resourceTemplates", "ui"),
        _look_at_apps,
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
