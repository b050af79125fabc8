"""Save a call of the page as a test of its result, in a file of its own.

Rule: a file that is there already stays as it is.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

from mcpgreen.catalog.descriptions.yaml_text import value_of
from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

MAX_EQUAL_CHARS = 1000  # of a text; of a longer one, the test compares the beginning
MAX_TEST_BYTES = 1 << 20
MAX_TESTS = 100  # of one tool


def save_test(root: str, tool: str, arguments: Json, result: Json) -> str:
    """Write a test that expects this result. Return its file. Raises Rejected."""
    test: Json = {"name": f"{tool} answers", "arguments": arguments, "expect": _expectation(result)}
    head = f"# Saved by mcpgreen dev; for mcpgreen test.\ntool: {_yaml(tool)}\ntests:\n"
    raw = f"{head}  - name: {_yaml(test['name'])}\n    arguments: {_yaml(arguments)}\n    expect:\n".encode()
    raw += "".join(f"      {name}: {_yaml(value)}\n" for name, value in test["expect"].items()).encode()
    with suppress(ValueError):
        if len(raw) <= MAX_TEST_BYTES and value_of(raw, is_strict=True) == {"tool": tool, "tests": [test]}:
            return _written(root, re.sub(r"[^A-Za-z0-9_-]", "_", tool), raw)
    raise Rejected("This call is too large for a test.")


def _written(root: str, word: str, raw: bytes) -> str:
    """Write the first file tests/WORD.test.yaml, tests/WORD-2.test.yaml ... that is not there yet."""
    directory = os.path.join(root, "tests")
    if not is_within(os.path.realpath(directory), os.path.realpath(root)):
        raise Rejected("tests/ is a link to another place.")
    try:
        os.makedirs(directory, exist_ok=True)
        for number in range(1, MAX_TESTS + 1):
            file = f"tests/{word}{f'-{number}' if number > 1 else ''}.test.yaml"
            with suppress(FileExistsError), open(os.path.join(root, file), "xb") as new:
                new.write(raw)
                return file
    except OSError as error:
        raise Rejected(f"A test cannot be written to tests/: {error.strerror}.") from error
    raise Rejected(f"There are {MAX_TESTS} tests of this tool already.")


def _expectation(result: Json) -> Json:
    expected: Json = {"isError": bool(result.get("isError", False))}
    if "exitCode" in (result.get("_meta") or {}):
        expected["exitCode"] = result["_meta"]["exitCode"]
    text = "".join(each.get("text", "") for each in result.get("content", ()) if each.get("type") == "text")
    if text:
        expected["text"] = text if len(text) <= MAX_EQUAL_CHARS else {"contains": text[:MAX_EQUAL_CHARS]}
    if "structuredContent" in result:
        expected["json"] = {"structuredContent": {"equals": result["structuredContent"]}}
    return expected


def _yaml(value: object) -> str:
    """Return JSON that is YAML, too: without characters that a YAML file may not contain."""
    text = json.dumps(jsontext.loads(jsontext.dumps(value)), ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
