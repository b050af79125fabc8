"""Save a call of the page as a test of its result, in a new file."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from itertools import count

from mcpgreen.catalog.descriptions.yaml_text import value_of
from mcpgreen.cli.making.drafts import Draft
from mcpgreen.cli.testing.expecting import MATCHERS
from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

MAX_EQUAL_CHARS = 1000  # of a text; of a longer one, the test compares the beginning
MAX_TEST_BYTES = 1 << 20


def save_test(root: str, tool: str, arguments: Json, result: Json) -> str:
    """Write a test that expects this result. Return its file. Raises Rejected and ProjectError."""
    test: Json = {"name": f"{tool} answers", "arguments": arguments, "expect": _expectation(result)}
    text = f"# Saved by mcpgreen dev; for mcpgreen test.\ntool: {_yaml(tool)}\ntests:\n"
    text += f"  - name: {_yaml(test['name'])}\n    arguments: {_yaml(arguments)}\n    expect:\n"
    text += "".join(f"      {name}: {_yaml(value)}\n" for name, value in test["expect"].items())
    is_readable = False
    with suppress(ValueError):
        is_readable = value_of(text.encode(), is_strict=True) == {"tool": tool, "tests": [test]}
    if not is_readable or len(text.encode()) > MAX_TEST_BYTES:
        raise Rejected("This call is too large for a test.")
    if not is_within(os.path.realpath(os.path.join(root, "tests")), os.path.realpath(root)):
        raise Rejected("tests/ is a link to another place.")
    word = re.sub(r"[^A-Za-z0-9_-]", "_", tool)
    files = (f"tests/{word}{f'-{number}' if number > 1 else ''}.test.yaml" for number in count(1))
    file = next(each for each in files if not os.path.lexists(os.path.join(root, each)))
    Draft({os.path.join(root, file): text}).write()
    return file


def _expectation(result: Json) -> Json:
    expected: Json = {"isError": bool(result.get("isError", False))}
    if "exitCode" in (result.get("_meta") or {}):
        expected["exitCode"] = result["_meta"]["exitCode"]
    text = "".join(each.get("text", "") for each in result.get("content", ()) if each.get("type") == "text")
    if text:
        expected["text"] = text if len(text) <= MAX_EQUAL_CHARS else {"contains": text[:MAX_EQUAL_CHARS]}
    if "structuredContent" in result:
        expected["json"] = _paths_of("structuredContent", result["structuredContent"])
    return expected


def _paths_of(path: str, value: object) -> Json:
    """Return the value by its path, or its members by theirs, if it would be read as what a text has to match."""
    if isinstance(value, dict) and value and value.keys() <= MATCHERS.keys():
        return {f"{path}.{name}": each for name, each in value.items()}
    return {path: value}


def _yaml(value: object) -> str:
    """Return JSON that is YAML, too: without characters that a YAML file may not contain."""
    text = json.dumps(jsontext.loads(jsontext.dumps(value)), ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
