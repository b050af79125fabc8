"""Build a project on disk, tool by tool."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


class ProjectBuilder:
    """A project directory with its tools. Every script is real."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir(parents=True, exist_ok=True)
        (root / "server.d").mkdir(exist_ok=True)
        self.write("server.d/server.meta.json", json.dumps({"name": "test-project", "version": "1.2.3"}))

    def tool(self, name: str, script: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> Path:
        """A shell tool (or any other with its own shebang). `fields` go into its metadata."""
        if not script.startswith("#!"):
            script = "#!/bin/bash\n" + script
        # Written aside and moved in, so that a server that watches never meets half a tool.
        path = self.root / "tools" / name
        description = {**(meta or {}), **fields}
        if description:
            self._place(path.with_name(name + ".meta.json"), json.dumps(description), 0o644)
        self._place(path, script, 0o755)
        return path

    def python_tool(self, name: str, body: str, **fields: Any) -> Path:
        """One that needs nothing but Python; to look for packages takes a third of its start."""
        return self.tool(name, f"#!{sys.executable} -S\n{body}", **fields)

    def forked_tool(self, name: str, body: str, **fields: Any) -> Path:
        """One whose first line is so plain that a server forks it from a running Python."""
        return self.tool(name, f"#!{sys.executable}\n{body}", **fields)

    def prompt(self, file_name: str, text: str, *, meta: dict[str, Any] | None = None, **fields: Any) -> Path:
        """A file below prompts/, with a description beside it if there are fields. What has a shebang can be run."""
        path = self.root / "prompts" / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        description = {**(meta or {}), **fields}
        if description:
            self._place(path.with_name(path.stem + ".meta.json"), json.dumps(description), 0o644)
        self._place(path, text, 0o755 if text.startswith("#!") else 0o644)
        return path

    def program(self, relative: str, script: str) -> Path:
        """An executable script anywhere in the project."""
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        self._place(path, script if script.startswith("#!") else "#!/bin/bash\n" + script, 0o755)
        return path

    def resource(self, name: str, content: str | bytes, **fields: Any) -> Path:
        """A file below resources/. `fields` go into its description."""
        path = self.root / "resources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if fields:
            self.described(name, **fields)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def described(self, name: str, **fields: Any) -> Path:
        """A description below resources/ alone: of a template, or of a resource that is elsewhere."""
        return self.write(f"resources/{name}.meta.json", json.dumps(fields))

    def provider(self, name: str, script: str, *, mode: int = 0o755) -> Path:
        """A script below providers/; the name has its suffix."""
        path = self.root / "providers" / name
        path.parent.mkdir(exist_ok=True)
        self._place(path, script if script.startswith("#!") else "#!/bin/bash\n" + script, mode)
        return path

    def skill(self, folder: str, text: str = "Say hello.\n", **fields: Any) -> Path:
        """A SKILL.md; `fields` go into its front matter."""
        front_matter = {"name": folder, "description": f"What {folder} is for.", **fields}
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in front_matter.items()]
        return self.write(f"skills/{folder}/SKILL.md", f"---\n{''.join(lines)}---\n\n{text}")

    def write(self, relative: str, content: str) -> Path:
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    def read(self, relative: str) -> str:
        return (self.root / relative).read_text(encoding="utf-8")

    def remove(self, relative: str) -> None:
        (self.root / relative).unlink()

    def _place(self, path: Path, content: str, mode: int) -> None:
        aside = self.root / f".{path.name}.new"
        aside.write_text(content, encoding="utf-8")
        aside.chmod(mode)
        os.replace(aside, path)
