"""The languages that `scaffold` writes scripts in, and the templates for new files."""

from __future__ import annotations

import os
from typing import NamedTuple

from mcpgreen import PACKAGE_DIR
from mcpgreen.errors import ProjectError

TEMPLATES = os.path.join(PACKAGE_DIR, "templates")


class Language(NamedTuple):
    name: str  # also that of its templates
    suffix: str
    program: str
    debian_package: str = ""  # if the image of the Dockerfile lacks it
    has_signatures: bool = False  # a tool is described by its signature


LANGUAGES = {
    language.name: language
    for language in (
        Language("bash", "sh", "bash"),
        Language("sh", "sh", "sh"),
        Language("python", "py", "python3", has_signatures=True),
        Language("node", "cjs", "node", "nodejs"),  # `.js` would be a module where a package.json says so
        Language("perl", "pl", "perl", "perl"),
        Language("ruby", "rb", "ruby", "ruby"),
    )
}
DEFAULT = "bash"


def language_of(name: str | None) -> Language:
    try:
        return LANGUAGES[name or DEFAULT]
    except KeyError:
        raise ProjectError(f"--lang {name}", f"this is not known; choose one of {', '.join(LANGUAGES)}") from None


def filled(template: str, **values: str) -> str:
    """A file of `templates/` with the values in their places: `name` where it says @NAME@."""
    with open(os.path.join(TEMPLATES, template), encoding="utf-8") as file:
        text = file.read()
    for name, value in values.items():
        text = text.replace(f"@{name.upper()}@", value)
    return text
