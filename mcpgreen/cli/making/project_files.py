"""The files of a new project."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from mcpgreen import __version__
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.making.editor_schemas import MARK, name_schemas
from mcpgreen.cli.making.items import add_tests, add_tool
from mcpgreen.cli.making.languages import Language, filled
from mcpgreen.cli.making.names import title_of

FIRST_TOOL = "hello"
FIRST_VERSION = "0.1.0"


class Wishes(NamedTuple):
    """What a project shall be like."""

    name: str
    title: str
    description: str
    language: Language
    has_hello: bool
    has_docker: bool = False


def default_description(name: str) -> str:
    return f"The tools of {title_of(name)}"


def ignored_files() -> str:
    return filled("project/gitignore")


def project_draft(root: str, wishes: Wishes) -> Draft:
    """All files of a project but `.gitignore`, which may be there before."""
    draft = Draft()
    meta = {
        "$schema": f"{MARK}/server.schema.json",
        "name": wishes.name,
        "title": wishes.title,
        "version": FIRST_VERSION,
        "description": wishes.description,
    }
    draft.add(os.path.join(root, "server.d", "server.meta.json"), json.dumps(meta, indent=2, ensure_ascii=False) + "\n")
    if wishes.has_hello:
        add_tool(draft, os.path.join(root, "tools"), FIRST_TOOL, wishes.language)
    add_tests(draft, root)
    draft.add(os.path.join(root, "README.md"), _readme(wishes))
    if wishes.has_docker:
        draft.add(os.path.join(root, "Dockerfile"), _dockerfile(wishes))
        draft.add(os.path.join(root, ".dockerignore"), filled("project/dockerignore"))
    name_schemas(draft, os.path.join(root, "server.d"))
    return draft


def _readme(wishes: Wishes) -> str:
    first_try = f'    mcpgreen run-tool {FIRST_TOOL} --args \'{{"name": "Ada"}}\'\n' if wishes.has_hello else ""
    return filled("project/README.md", title=wishes.title, description=wishes.description, **{"try": first_try})


def _dockerfile(wishes: Wishes) -> str:
    package = wishes.language.debian_package
    install = f"apt-get update && apt-get install -y --no-install-recommends {package} && rm -rf /var/lib/apt/lists/*"
    packages = f"RUN {install}" if package else "# What your tools need besides Python and a shell is installed here."
    return filled("project/Dockerfile", name=wishes.name, version=__version__, packages=packages)
