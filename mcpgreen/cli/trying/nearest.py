"""What may have been meant by a name that nothing has, and why what has it is not offered."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcpgreen.catalog.descriptions.metadata import stem_of
from mcpgreen.catalog.items import Loss
from mcpgreen.cli.checking.item_checks import discoveries
from mcpgreen.cli.checking.validate import registration_of
from mcpgreen.engine.server import Server


class LeftOut(NamedTuple):
    """Something on disk that is not offered."""

    kind: str
    path: str
    reason: str


def left_out(server: Server) -> list[LeftOut]:
    """What lies in the project's folders and is not offered, with the reason."""
    project, settings = server.services.project, server.services.settings
    registration, error = registration_of(project, settings, os.environ)
    if error is not None:
        return [LeftOut("project", project.shown(error.path), error.reason)]
    found: list[LeftOut] = []
    for kind, discovery in discoveries(project, registration).items():
        if isinstance(discovery, OSError):
            continue  # told when it is listed
        losses = [warning for warning in discovery.warnings if isinstance(warning, Loss)]
        for text in [*losses, *discovery.hints]:
            path, _, reason = text.partition(": ")
            found.append(LeftOut(kind, path, reason))
    return found


def suggestion(name: str, names: Iterable[str], missing: Sequence[LeftOut] = ()) -> str:
    """A sentence or several that help on; empty when there is nothing to say."""
    import difflib

    said = []
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    if near:
        said.append(f"Did you mean {' or '.join(near)}?")
    said += [f"{each.path}: {each.reason}" for each in missing if _may_be(name, each.path)]
    return "\n".join(said)


def _may_be(name: str, path: str) -> bool:
    directory, file_name = os.path.split(path)
    return name in (file_name, stem_of(file_name), os.path.basename(directory))
