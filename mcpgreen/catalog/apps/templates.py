"""Build the HTML document of an MCP App from a template and its configuration.

The templates are in `templates/ui`, with the style and the script that they share. The document contains all of these
and fetches nothing, so an app works under the strictest policy of a host.

Rule: text from an author or a tool never becomes markup. The title is escaped, the configuration is JSON in which no
character can end its element, and the scripts of the templates only make text nodes of data.
"""

from __future__ import annotations

import functools
import html
import os
import re
from collections.abc import Iterator

from mcpgreen import PACKAGE_DIR
from mcpgreen.catalog.descriptions.metadata import A_BOOLEAN, A_STRING, AN_OBJECT, Rule, is_number, shown, violations
from mcpgreen.errors import ProjectError
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

DIRECTORY = os.path.join(PACKAGE_DIR, "templates", "ui")
FIELD_TYPES = ("text", "email", "password", "number", "date", "textarea", "select", "checkbox")
_PLACE = re.compile(r"\{\{(title|style|own_style|main|config|bridge|own_script)\}\}")
_PARTS = re.compile(r"<style>\n(.*)</style>\n\n(<main.*</main>\n)\n<script>\n(.*)</script>\n", re.DOTALL)
# Inside JSON these stand in strings only, where an escape says the same and no HTML parser sees an end tag or comment.
_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})

A_NAME = Rule(lambda value: isinstance(value, str) and bool(value), "a non-empty string")
AN_ARRAY = Rule(lambda value: isinstance(value, list), "an array")
A_SCALAR = Rule(lambda value: isinstance(value, (str, int, float)), "a string, a number or a boolean")

COMMON_RULES = {"title": A_STRING}
CONFIG_RULES: dict[str, dict[str, Rule]] = {
    "form": {
        "description": A_STRING,
        "fields": AN_ARRAY,
        "submitTool": A_NAME,
        "submitArgs": AN_OBJECT,
        "cancelable": A_BOOLEAN,
    },
    "data-table": {"columns": AN_ARRAY},
    "progress": {
        **dict.fromkeys(("showPercentage", "showCurrentStep"), A_BOOLEAN),
        **dict.fromkeys(("cancelTool", "cancelConfirm"), A_STRING),
        "cancelArgs": AN_OBJECT,
    },
    "diff-viewer": {
        "viewMode": Rule(lambda value: value in ("split", "unified"), "split or unified"),
        **dict.fromkeys(("showLineNumbers", "syntaxHighlight"), A_BOOLEAN),
        **dict.fromkeys(("leftTitle", "rightTitle"), A_STRING),
    },
    "tree-view": {
        "showIcons": A_BOOLEAN,
        "expandLevel": Rule(lambda value: is_number(value) and value >= 0, "a number, 0 or more"),
        "selectable": A_BOOLEAN,
        "onSelectTool": A_STRING,
    },
    "kanban": {"columns": AN_ARRAY, "draggable": A_BOOLEAN, "onMoveTool": A_STRING, "onCardClickTool": A_STRING},
}
REQUIRED = {"form": ("fields", "submitTool")}

# Members of the objects in `fields` and `columns`; the first of each must be there.
MEMBER_RULES: dict[tuple[str, str], dict[str, Rule]] = {
    ("form", "fields"): {
        "name": A_NAME,
        "type": Rule(lambda value: value in FIELD_TYPES, f"one of {', '.join(FIELD_TYPES)}"),
        "label": A_STRING,
        "required": A_BOOLEAN,
        "placeholder": A_STRING,
        "default": A_SCALAR,
        "options": AN_ARRAY,
    },
    ("data-table", "columns"): {"key": A_NAME, "label": A_STRING, "sortable": A_BOOLEAN},
    ("kanban", "columns"): {"id": A_NAME, "title": A_STRING},
}

TEMPLATES = tuple(CONFIG_RULES)


def require_usable(source: str, template: str, config: Json) -> None:
    """Raise ProjectError with all problems of this configuration."""
    if found := "; ".join(problems(template, config)):
        raise ProjectError(source, found)


def render(template: str, config: Json, *, title: str) -> str:
    """Return the app as one HTML document. `title` is used where the configuration has none. Raises ProjectError."""
    require_usable(f"template {template}", template, config)
    # JSON can hold half a surrogate pair, a document cannot.
    shown_title = html.escape((config.get("title") or title).encode("utf-8", "replace").decode("utf-8"))
    own_style, main, own_script = _parts_of(template)
    parts = {
        "title": shown_title,
        # U+2028 and U+2029 are escaped with all else that is not ASCII.
        "config": jsontext.dumps(config).decode("ascii").translate(_UNSAFE),
        "style": _text_of("base.css"),
        "bridge": _text_of("bridge.js"),
        "own_style": own_style,
        "main": main.replace("{{title}}", shown_title),
        "own_script": own_script,
    }
    # In one pass, so that a place in an inserted text is not filled.
    return _PLACE.sub(lambda place: parts[place.group(1)], _text_of("page.html"))


def problems(template: str, config: Json) -> Iterator[str]:
    """Sentences about everything that is wrong with this configuration."""
    if template not in CONFIG_RULES:
        yield f"template must be one of {', '.join(TEMPLATES)}, found {shown(template)}"
        return
    for key in REQUIRED.get(template, ()):
        if config.get(key) is None:
            yield f"config.{key} is missing"
    yield from _wrong_members({**COMMON_RULES, **CONFIG_RULES[template]}, config, "config.")
    for (owner, key), rules in MEMBER_RULES.items():
        members = config.get(key)
        if owner == template and isinstance(members, list):
            yield from _wrong_list(template, f"config.{key}", members, rules)
    try:
        jsontext.dumps(config)
    except ValueError as error:
        yield f"config is not JSON: {error}"


def _wrong_list(template: str, place: str, members: list[object], rules: dict[str, Rule]) -> Iterator[str]:
    identity = next(iter(rules))
    if not members:
        yield f"{place} must not be empty"
    seen: set[str] = set()
    for index, member in enumerate(members):
        here = f"{place}[{index}]"
        if template == "kanban" and isinstance(member, str) and member:
            member = {"id": member}  # a column may be given by its name alone
        if not isinstance(member, dict):
            yield f"{here} must be an object, found {shown(member)}"
            continue
        if member.get(identity) is None:
            yield f"{here}.{identity} is missing"
        yield from _wrong_members(rules, member, f"{here}.")
        if member.get("type") == "select":
            yield from _wrong_options(here, member.get("options"))
        name = member.get(identity)
        if isinstance(name, str) and name in seen:
            yield f"{here}.{identity} appears twice: {shown(name)}"
        elif isinstance(name, str):
            seen.add(name)


def _wrong_options(place: str, options: object) -> Iterator[str]:
    if not isinstance(options, list) or not options:
        yield f"{place}.options is missing: a select needs an array of options"
        return
    for index, option in enumerate(options):
        value = option.get("value") if isinstance(option, dict) else option
        if not A_SCALAR.accepts(value):
            yield f"{place}.options[{index}] must be {A_SCALAR.wanted}, or an object with value and label"


def _wrong_members(rules: dict[str, Rule], given: Json, prefix: str) -> Iterator[str]:
    said = {key: given[key] for key in rules if given.get(key) is not None}
    return (f"{prefix}{key} {problem}" for key, problem in violations(rules, said))


@functools.cache
def _parts_of(template: str) -> tuple[str, str, str]:
    """Return the style, the content and the script that a template adds to the shared document."""
    found = _PARTS.fullmatch(_text_of(f"{template}.html"))
    assert found is not None, "a template has a style, a main and a script"
    return found.group(1), found.group(2), found.group(3)


@functools.cache
def _text_of(file_name: str) -> str:
    with open(os.path.join(DIRECTORY, file_name), encoding="utf-8") as file:
        return file.read()
