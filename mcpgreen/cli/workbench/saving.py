"""What can be taken along from a call: its command line, its JSON-RPC, and a test of its result.

Rule: a test is added to its file, and nothing else in the file changes; a file where that is not certain is refused.
"""

from __future__ import annotations

import json
import os
import re
import shlex

from mcpgreen.catalog.descriptions.yaml_text import value_of
from mcpgreen.cli.workbench.door import Rejected
from mcpgreen.files.regular_files import replacing
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

PLACE = re.compile(r"(?:tests|tools/[\w-][\w.-]*)/[\w-][\w.-]*\.test\.yaml", re.ASCII)
MAX_TEST_BYTES = 1 << 20
MAX_EQUAL_CHARS = 1000  # of a text; of a longer one, the test compares the beginning
MAX_PATHS = 20
MEMBER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ITEM = re.compile(r"^tests:[^\S\n]*\n(?:[^\S\n]*(?:#.*)?\n)*( *)- ", re.MULTILINE)


def run_tool_line(root: str, name: str, arguments: Json) -> str:
    """Return the command that calls the tool in a shell."""
    words = ["mcpgreen", "run-tool", name, "--args", json.dumps(arguments, ensure_ascii=False)]
    return shlex.join([*words, "--project-root", root])


def save_test(root: str, name: str, arguments: Json, answer: Json, file: str = "") -> str:
    """Add a test that expects this answer. Return its file. Raises Rejected."""
    result = answer.get("result", answer if "content" in answer else None)
    if not isinstance(result, dict):
        raise Rejected("Only a result can be expected by a test, and this call has none.")
    file = file or f"tests/{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.test.yaml"
    path = os.path.join(root, file)
    directory = os.path.dirname(path)
    if not PLACE.fullmatch(file) or ".." in file or not is_within(os.path.realpath(directory), os.path.realpath(root)):
        raise Rejected("Tests are in tests/NAME.test.yaml and tools/NAME/NAME.test.yaml.")
    try:
        with open(path, "rb") as old:
            raw = old.read(MAX_TEST_BYTES)
    except FileNotFoundError:
        raw = f"tool: {_yaml(name)}\ntests:\n".encode()
    text = _with_test(raw, name, {"arguments": arguments, "expect": _expectation(result)})
    if text is None:
        raise Rejected(f"A test cannot be added to {file}: choose another file.", "409 Conflict")
    os.makedirs(directory, exist_ok=True)
    with replacing(path, mode=0o644) as new:
        new.write(text)
    return file


def _with_test(raw: bytes, tool: str, test: Json) -> bytes | None:
    """Return the file with one more test; None if something else in it would change."""
    try:
        old = value_of(raw)
        tests = old["tests"] or []
        test = {"name": f"{tool} {len(tests) + 1}", **({} if old.get("tool") == tool else {"tool": tool}), **test}
        earlier = _ITEM.search(raw.decode("utf-8"))
        indent = earlier[1] if earlier else "  "
        lines = [f"  {key}: {_yaml(value)}\n" for key, value in test.items() if key != "expect"]
        lines += ["  expect:\n", *(f"    {key}: {_yaml(value)}\n" for key, value in test["expect"].items())]
        item = "".join(indent + line for line in (f"- {lines[0].lstrip()}", *lines[1:]))
        new = b"%b%b%b" % (raw, b"" if raw.endswith(b"\n") else b"\n", item.encode("utf-8"))
        is_certain = value_of(new) == {**old, "tests": [*tests, test]}
        return new if is_certain and len(new) <= MAX_TEST_BYTES else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _expectation(result: Json) -> Json:
    expected: Json = {"isError": bool(result.get("isError", False))}
    if "exitCode" in (result.get("_meta") or {}):
        expected["exitCode"] = result["_meta"]["exitCode"]
    text = "".join(each.get("text", "") for each in result.get("content", ()) if each.get("type") == "text")
    if text:
        expected["text"] = text if len(text) <= MAX_EQUAL_CHARS else {"contains": text[:MAX_EQUAL_CHARS]}
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and structured and all(map(MEMBER.fullmatch, structured)):
        named = list(structured.items())[:MAX_PATHS]
        expected["json"] = {f"structuredContent.{key}": value for key, value in named}
    elif structured is not None:
        expected["json"] = {"structuredContent": structured}
    return expected


def _yaml(value: object) -> str:
    """Return JSON that is YAML, too: without characters that a YAML file may not contain."""
    text = json.dumps(jsontext.loads(jsontext.dumps(value)), ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
