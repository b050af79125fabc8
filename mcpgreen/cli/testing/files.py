"""Read and write the files with tests: `*.test.yaml` in tests/, and beside tools in tools/NAME/.

Their format is templates/schemas/test.schema.json, which editors know, too. Here is only what a schema cannot say.
Tests are read completely before one of them runs.

Rule: everything that is wrong is reported with its file and line. An unknown key is a mistake: a test with a misspelt
expectation would always pass.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mcpgreen.catalog.descriptions import yaml_text
from mcpgreen.cli.making.drafts import Draft, filled
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import Project
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json
from mcpgreen.text.uris import is_within

SUFFIX = ".test.yaml"
SCHEMA = "schemas/test.schema.json"
MAX_FILE_BYTES = 1 << 20
MAX_FILES = 500
MAX_EQUAL_CHARS = 1000  # of a text; of a longer one, a test that is written compares the beginning


class ToolTest(NamedTuple):
    """One test, with the values that its file has for all tests."""

    file: str  # its path
    shown_file: str
    line: int
    name: str
    tool: str
    start: Json  # what `ProjectClient` is told
    call: Json  # the same for its `call`
    expect: Json

    @property
    def title(self) -> str:
        return f"{self.shown_file}: {self.name}"

    @property
    def snapshot(self) -> str:
        folder, file = os.path.split(self.file)
        return os.path.join(folder, "snapshots", file.removesuffix(SUFFIX), f"{_file_name(self.name)}.json")


def _file_name(name: str) -> str:
    """Return the name of a test as that of a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:100] or "test"


def find_files(project: Project, places: Sequence[str]) -> list[str]:
    """Return the files of a project, or of these places. Raises UsageError if there are none."""
    tests = Path(project.root, "tests")
    found = [] if places else [*tests.glob(f"*{SUFFIX}"), *Path(project.tools_dir).glob(f"*/*{SUFFIX}")]
    for place in map(Path, places):
        found += place.rglob(f"*{SUFFIX}") if place.is_dir() else [place]
    if not found:
        where = " ".join(places) or f"tests/*{SUFFIX} or tools/*/*{SUFFIX}"
        remedy = "mcpgreen scaffold test NAME writes one for the tool NAME"
        raise UsageError(f"There are no files with tests: {where}. {remedy}.")
    if len(found) > MAX_FILES:
        raise UsageError(f"There are more than {MAX_FILES} files with tests; name some of them.")
    return sorted({os.path.abspath(file) for file in found})


def read_tests(files: Sequence[str], project: Project) -> tuple[list[ToolTest], list[str]]:
    """Read the files. Return the tests, and a sentence for everything that is wrong."""
    schema = jsontext.loads(filled(SCHEMA))
    of_tests = compile_schema({**schema, "$ref": "#/definitions/test"}, noun="key")
    schema["properties"]["tests"]["items"] = {}
    of_files = compile_schema(schema, noun="key")
    tests: list[ToolTest] = []
    faults: list[str] = []
    for path in files:
        shown = project.shown(path)
        try:
            raw = content_of(path, MAX_FILE_BYTES)
            value = yaml_text.value_of(raw, is_strict=True)
        except (ProjectError, ValueError) as error:
            faults.append(f"{shown}: {error.reason if isinstance(error, ProjectError) else error}")
            continue
        problems = of_files.problems(value)
        faults += [f"{shown}:1: {problem}" for problem in problems]
        marks, names = yaml_text.marks_in(raw), set[str]()
        for index, test in enumerate([] if problems else value["tests"]):
            line = marks.get(("tests", index), (1, 1))[0]
            problems = of_tests.problems(test) or list(_faults(test, value, names))
            faults += [f"{shown}:{line}: {problem}" for problem in problems]
            if not problems:
                tests.append(_test_of(path, shown, line, value, test))
    return tests, faults


def _faults(test: Json, file: Json, names: set[str]) -> Iterator[str]:
    """Yield what is wrong with a test that has the right form. `names` are those of the tests before it."""
    if not test.get("tool", file.get("tool")):
        yield "the test needs a tool, here or at the top of the file"
    if _file_name(test["name"]) in names:
        yield "another test in this file has this name, or nearly the same; choose another"
    names.add(_file_name(test["name"]))


def _test_of(path: str, shown: str, line: int, file: Json, test: Json) -> ToolTest:
    variables = {**file.get("environment", {}), **test.get("environment", {})}
    environment = {name: str(value) for name, value in variables.items()}
    start = {"environment": environment, **file.get("client", {}), **test.get("client", {})}
    call: Json = {name: test[name] for name in ("arguments", "answers") if name in test}
    expect = test.get("expect", {})
    call |= {"within_secs": expect["withinSecs"]} if "withinSecs" in expect else {}
    return ToolTest(path, shown, line, test["name"], test.get("tool") or file["tool"], start, call, expect)


def save_test(root: str, tool: str, arguments: Json, result: Json) -> str:
    """Write a test that expects this result, in a new file; return the file. Raises UsageError and ProjectError."""
    test: Json = {"name": f"{tool} answers", "arguments": arguments, "expect": _expectation(result)}
    text = f"# Saved by mcpgreen dev; for mcpgreen test.\ntool: {_yaml(tool)}\ntests:\n"
    text += f"  - name: {_yaml(test['name'])}\n    arguments: {_yaml(arguments)}\n    expect:\n"
    text += "".join(f"      {name}: {_yaml(value)}\n" for name, value in test["expect"].items())
    is_readable = False
    with suppress(ValueError):
        is_readable = yaml_text.value_of(text.encode(), is_strict=True) == {"tool": tool, "tests": [test]}
    if not is_readable or len(text.encode()) > MAX_FILE_BYTES:
        raise UsageError("This call is too large for a test.")
    if not is_within(os.path.realpath(os.path.join(root, "tests")), os.path.realpath(root)):
        raise UsageError("tests/ is a link to another place.")
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
        expected["json"] = {"structuredContent": result["structuredContent"]}
    return expected


def _yaml(value: object) -> str:
    """Return JSON that is YAML, too: without characters that a YAML file may not contain."""
    text = json.dumps(jsontext.loads(jsontext.dumps(value)), ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
