"""JSON Schemas beside what is made, so that editors complete and check it.

They lie in the project, in `server.d/schemas/`, and are named by a relative path: that works without a network, and for
everybody who shares the project.
"""

from __future__ import annotations

import os
import re

from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.languages import filled

MARK = "@SCHEMAS@"  # in the templates, for the directory of the schemas
_NAMED = re.compile(rf'"{MARK}/([a-z]+\.schema\.json)"')


def name_schemas(draft: Draft, server_dir: str) -> None:
    """Let each file of the draft that has a schema name it, and add those schemas that the project lacks."""
    home = os.path.join(server_dir, "schemas")
    for path in draft.paths:
        content = draft.content_of(path)
        for name in _NAMED.findall(content):
            if not os.path.lexists(os.path.join(home, name)):
                draft.add(os.path.join(home, name), filled(f"schemas/{name}"))
        if MARK in content:
            draft.replace(path, content.replace(MARK, os.path.relpath(home, os.path.dirname(path))))
