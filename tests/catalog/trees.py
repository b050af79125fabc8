"""Project trees for the tests of the catalog: real files in a temporary directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcpgreen.project.project import Project
from mcpgreen.text import jsontext


class TreeBuilder:
    """Writes a project below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True)

    @property
    def project(self) -> Project:
        return Project(str(self.root), {})

    def write(self, path: str, text: str | bytes, *, mode: int = 0o644) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        target.chmod(mode)
        return target

    def tool(self, name: str, /, *, body: str = "echo hi", **fields: Any) -> Path:
        """An executable tools/<name>/<name>.sh, with a .meta.json beside it if there are fields."""
        if fields:
            self.write(f"tools/{name}/{name}.meta.json", jsontext.dumps(fields))
        return self.write(f"tools/{name}/{name}.sh", f"#!/usr/bin/env bash\n{body}\n", mode=0o755)
