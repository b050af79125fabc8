"""Below which directories files may be read as resources, besides the roots."""

from __future__ import annotations

import os

from mcpgreen.files.kernel_files import is_kernel_path
from mcpgreen.project.project import Project
from mcpgreen.settings.settings import Settings
from mcpgreen.text.uris import is_within


def resource_directories(project: Project, settings: Settings) -> list[str]:
    """Below which files may be read as resources, whatever the roots: resources/, and what the operator names."""
    named = _named_for_resources(project, settings)
    return [project.resources_dir, *(path for path in named if not _is_refused(path, project))]


def refused_directories(project: Project, settings: Settings) -> list[str]:
    """Those that the operator names for resources in vain."""
    return [path for path in _named_for_resources(project, settings) if _is_refused(path, project)]


def _named_for_resources(project: Project, settings: Settings) -> list[str]:
    named = [path for path in settings.resources_roots.split(":") if path]
    return [os.path.realpath(os.path.join(project.root, os.path.expanduser(path))) for path in named]


def _is_refused(path: str, project: Project) -> bool:
    return is_kernel_path(path) and not is_within(path, project.root)
