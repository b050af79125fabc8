"""What a project says that it needs, in `server.d/requirements.json`. Part of `doctor`.

The file comes from projects of mcp-bash: {"framework": {"minVersion": "1.3.0"}, "dependencies": [{"name": "git"},
{"or": ["jq", "gojq"]}]}. Serving needs nothing of it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from mcpgreen.catalog.descriptions import metadata
from mcpgreen.cli.checking.findings import ERROR, OK, WARNING, Check
from mcpgreen.errors import ProjectError
from mcpgreen.project.project import Project
from mcpgreen.running.scripts import jq

FILE = "requirements.json"
NAME = "requirements"
KNOWN_FRAMEWORK = (1, 3)  # of mcp-bash, whose projects are served


def requirement_checks(project: Project, environ: Mapping[str, str]) -> Iterator[Check]:
    """Nothing if the project has no such file."""
    path = project.server_file(FILE)
    if not os.path.lexists(path):
        return
    shown = project.shown(path)
    try:
        fields = metadata.read_meta_file(path)
        newer = _newer_framework(fields)
        wanted = _dependencies(fields)
    except (ProjectError, OSError, ValueError) as error:
        reason = error.reason if isinstance(error, ProjectError) else error
        yield Check(NAME, WARNING, f"{shown}: {reason}", "correct it, or remove it")
        return
    search_path = jq.path_with_jq(jq.path_in(environ))
    missing = [names for names in wanted if not any(shutil.which(name, path=search_path) for name in names)]
    for names in missing:
        fix = "install it, or put it on the PATH that the server has"
        yield Check(NAME, ERROR, f"{' or '.join(names)} is missing, which {shown} asks for", fix)
    if newer:
        fix = "see what of that version it uses; all of 1.3 is served"
        yield Check(NAME, WARNING, f"{shown} asks for mcp-bash {newer}", fix)
    if not missing and not newer:
        yield Check(NAME, OK, ", ".join(map(" or ".join, wanted)) or "no program is asked for")


def _newer_framework(fields: dict[str, Any]) -> str | None:
    """The version that is asked for, if it is one that nobody here knows."""
    framework = fields.get("framework", {})
    if not isinstance(framework, dict):
        raise ValueError("framework must be an object")
    version = framework.get("minVersion")
    if version is None:
        return None
    if not isinstance(version, str) or not re.fullmatch(r"\d{1,6}(\.\d{1,6}){1,3}", version):
        raise ValueError("framework.minVersion must be a version such as 1.3.0")
    return version if tuple(map(int, version.split(".")[:2])) > KNOWN_FRAMEWORK else None


def _dependencies(fields: dict[str, Any]) -> list[list[str]]:
    """Programs, each with those that may take its place."""
    entries = fields.get("dependencies", [])
    if not isinstance(entries, list):
        raise ValueError("dependencies must be an array")
    wanted = []
    for entry in entries:
        names = entry.get("or", [entry.get("name")]) if isinstance(entry, dict) else None
        if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
            raise ValueError('of dependencies each must look like {"name": "git"} or {"or": ["jq", "gojq"]}')
        wanted.append(names)
    return wanted
