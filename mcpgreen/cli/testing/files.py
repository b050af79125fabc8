"""Read the files with tests: `*.test.yaml` in tests/, and beside tools in tools/NAME/.

`SCHEMA` is the format, for this reader and for editors (`make docs` writes it to templates/schemas/). Tests are read
completely before one of them runs.

Rule: everything that is wrong is reported with its file and line. An unknown key is a mistake: a test with a misspelt
expectation would always pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mcpgreen.catalog.descriptions import yaml_text
from mcpgreen.cli.output import did_you_mean
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import Project
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE, NEWEST_FIRST
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

SUFFIX = ".test.yaml"
MAX_FILE_BYTES = 1 << 20
MAX_FILES = 500
MAX_TESTS = 5000

_TEXT = {"type": "string"}
_MATCHES: Json = {
    "contains": {**_TEXT, "description": "It contains this text"},
    "matches": {
        **_TEXT,
        "format": "regex",
        "description": "A part of it matches this Python regular expression",
    },
    "equals": {"description": "It is exactly this value"},
}
_MATCHER: Json = {"type": "object", "properties": _MATCHES, "additionalProperties": False, "minProperties": 1}
_OF_TEXT: Json = {"anyOf": [_TEXT, _MATCHER, {"type": "array", "items": {"anyOf": [_TEXT, _MATCHER]}}]}
EXPECT: Json = {
    "isError": {"type": "boolean", "description": "Whether the result is an error. Default: false"},
    "exitCode": {"type": "integer", "description": "The exit code of the tool"},
    "text": {**_OF_TEXT, "description": "The text: equal, {contains: ...} or {matches: REGEX}, or a list of these"},
    "error": {**_OF_TEXT, "description": "The call ends with a protocol error that has this message"},
    "json": {"type": "object", "description": "Values by their paths in the result, as in content[0].type"},
    "schema": {"type": "object", "description": "JSON Schema of the structured content"},
    "progress": {
        "anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 1}],
        "description": "Whether the tool reports progress, or how often at least",
    },
    "withinSecs": {"type": "number", "exclusiveMinimum": 0, "description": "How long the call may take"},
    "snapshot": {
        "anyOf": [
            {"type": "boolean"},
            {
                "type": "object",
                "properties": {"without": {"type": "array", "items": _TEXT}},
                "additionalProperties": False,
            },
        ],
        "description": "Compare the result with the one in snapshots/; {without: [PATH, ...]} leaves out parts of it",
    },
}
_ENVIRONMENT: Json = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number"]},
    "description": "Variables of the server, which may also be settings",
}
_CLIENT: Json = {
    "type": "object",
    "properties": {
        "revision": {"enum": NEWEST_FIRST, "description": f"Default: {LATEST_HANDSHAKE.name}"},
        "capabilities": {
            "anyOf": [{"enum": ["all", "none"]}, {"type": "object"}],
            "description": "all (the default), none, or an object as clients declare them",
        },
    },
    "additionalProperties": False,
    "description": "What the client supports",
}
_TOOL: Json = {**_TEXT, "description": "The name of the tool"}
TEST: Json = {
    "type": "object",
    "properties": {
        "name": {**_TEXT, "minLength": 1, "maxLength": 200, "description": "What the test shows, in a few words"},
        "tool": _TOOL,
        "arguments": {"type": "object", "description": "The arguments of the call"},
        "environment": _ENVIRONMENT,
        "client": _CLIENT,
        "answers": {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    _TEXT,
                    {"type": "object", "properties": {"action": {"enum": ["accept", "decline", "cancel"]}}},
                ]
            },
            "description": "Answers by the key of a question, a field of its form, or words in it; a model's is a text",
        },
        "skip": {**_TEXT, "description": "Why the test does not run now"},
        "expect": {
            "type": "object",
            "properties": EXPECT,
            "additionalProperties": False,
            "description": "What the call has to bring. Default: a result without isError",
        },
    },
    "required": ["name"],
    "additionalProperties": False,
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "$schema": _TEXT,
        "tool": {**_TOOL, "description": "The tool of all tests that do not name another one"},
        "environment": _ENVIRONMENT,
        "client": _CLIENT,
        "tests": {"type": "array", "items": TEST, "description": "The tests, in the order in which they run"},
    },
    "required": ["tests"],
    "additionalProperties": False,
}


class ToolTest(NamedTuple):
    """One test, with the values that its file has for all tests."""

    file: str  # its path
    shown_file: str
    line: int
    name: str
    tool: str
    arguments: Json
    environment: dict[str, str]
    revision: str
    capabilities: Json | str
    answers: Json
    skip: str | None
    expect: Json

    @property
    def title(self) -> str:
        return f"{self.shown_file}: {self.name}"

    @property
    def start(self) -> str:
        """What its server has to be: equal for tests that can share one."""
        return jsontext.digest([self.environment, self.revision, self.capabilities])

    @property
    def snapshot(self) -> str:
        folder, file = os.path.split(self.file)
        return os.path.join(folder, "snapshots", file.removesuffix(SUFFIX), f"{file_name(self.name)}.json")


def file_name(name: str) -> str:
    """Return the name of a test as that of a file."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:100] or "test"


def find_files(project: Project, places: Sequence[str]) -> list[str]:
    """Return the files of a project, or of these places. Raises UsageError."""
    tests = Path(project.root, "tests")
    found = [*sorted(tests.glob(f"*{SUFFIX}")), *sorted(Path(project.tools_dir).glob(f"*/*{SUFFIX}"))]
    if places:
        found = [file for place in places for file in _files_at(Path(place))]
    if not found:
        remedy = "mcpgreen scaffold test NAME writes one for the tool NAME"
        raise UsageError(f"There are no tests: no file tests/*{SUFFIX} or tools/*/*{SUFFIX}. {remedy}.")
    if len(found) > MAX_FILES:
        raise UsageError(f"There are more than {MAX_FILES} files with tests; name some of them.")
    return list(dict.fromkeys(os.path.abspath(file) for file in found))


def _files_at(place: Path) -> list[Path]:
    files = sorted(place.rglob(f"*{SUFFIX}")) if place.is_dir() else [place]
    if not place.exists() or not files:
        what = f"has no files *{SUFFIX}" if place.exists() else "does not exist"
        raise UsageError(f"{place} {what}.")
    return files


def read_tests(files: Sequence[str], project: Project) -> tuple[list[ToolTest], list[str]]:
    """Read the files. Return the tests, and a sentence for everything that is wrong."""
    tests: list[ToolTest] = []
    faults: list[str] = []
    for path in files:
        shown = os.path.relpath(path, project.root)
        shown = path if shown.startswith(os.pardir) else shown
        try:
            raw = content_of(path, MAX_FILE_BYTES)
            value = yaml_text.value_of(raw, is_strict=True)
        except (ProjectError, ValueError) as error:
            reason = error.reason if isinstance(error, ProjectError) else error
            faults.append(f"{shown}: {reason}")
            continue
        marks = yaml_text.marks_in(raw)
        found = [(marks.get(keys, (1, 1))[0], sentence) for keys, sentence in _faults(value)]
        if not found:
            tests += _tests_of(path, shown, value, marks)
        faults += [f"{shown}:{line}: {sentence}" for line, sentence in sorted(found)]
    if not faults and len(tests) > MAX_TESTS:
        faults.append(f"there are more than {MAX_TESTS} tests; name some of the files")
    return tests, faults


def _faults(value: object) -> Iterator[tuple[yaml_text.Keys, str]]:
    """Yield what is wrong: unknown keys first, because they explain the rest."""
    unknown = list(_unknown(value, SCHEMA, ()))
    yield from unknown
    tests = value.get("tests") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(tests, list):
        yield (), "a file with tests must have a list named tests"
        return
    checker = compile_schema({**SCHEMA, "properties": {**SCHEMA["properties"], "tests": {}}}, noun="key")
    for problem in [] if unknown else checker.problems(value):
        yield (), problem
    checker, names = compile_schema(TEST, noun="key"), set[str]()
    for index, test in enumerate(tests):
        keys: yaml_text.Keys = ("tests", index)
        problems = [] if any(at[:2] == keys for at, _ in unknown) else checker.problems(test)
        for problem in problems:
            yield keys, problem
        if problems or not isinstance(test, dict) or not isinstance(test.get("name"), str):
            continue
        if not test.get("tool", value.get("tool")):
            yield keys, "the test needs a tool, here or at the top of the file"
        if file_name(test["name"]) in names:
            yield (*keys, "name"), "another test in this file has this name, or nearly the same; choose another"
        names.add(file_name(test["name"]))
        yield from ((keys, problem) for problem in _faults_of_patterns(test))


def _unknown(value: object, schema: Json, keys: yaml_text.Keys) -> Iterator[tuple[yaml_text.Keys, str]]:
    known: Json = schema.get("properties", {})
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _unknown(item, schema["items"], (*keys, index))
    for key, member in value.items() if isinstance(value, dict) and known else ():
        if key in known:
            yield from _unknown(member, known[key], (*keys, key))
        elif schema.get("additionalProperties") is False:
            yield (*keys, key), f"unknown key: {key}" + (did_you_mean(key, known) or f"; known: {', '.join(known)}")


def _faults_of_patterns(test: Json) -> Iterator[str]:
    for part, _ in jsontext.walked(test.get("expect")):
        pattern = part.get("matches") if isinstance(part, dict) else None
        try:
            re.compile(pattern if isinstance(pattern, str) else "")
        except re.error as error:
            yield f"matches: {pattern} is not a regular expression: {error}"


def _tests_of(path: str, shown: str, value: Json, marks: dict[yaml_text.Keys, yaml_text.Mark]) -> Iterator[ToolTest]:
    for index, test in enumerate(value["tests"]):
        client = {**value.get("client", {}), **test.get("client", {})}
        environment = {**value.get("environment", {}), **test.get("environment", {})}
        yield ToolTest(
            path,
            shown,
            marks.get(("tests", index), (1, 1))[0],
            test["name"],
            test.get("tool") or value["tool"],
            test.get("arguments", {}),
            {name: str(each) for name, each in environment.items()},
            client.get("revision", LATEST_HANDSHAKE.name),
            client.get("capabilities", "all"),
            test.get("answers", {}),
            test.get("skip"),
            test.get("expect", {}),
        )
