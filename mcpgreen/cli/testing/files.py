"""Read the files with tests: `*.test.yaml` in tests/, and beside tools in tools/NAME/.

Their format is templates/schemas/test.schema.json, which editors know, too. Here is only what a schema cannot say.
Tests are read completely before one of them runs.

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
from mcpgreen.cli.making.drafts import filled
from mcpgreen.errors import ProjectError, UsageError
from mcpgreen.files.regular_files import content_of
from mcpgreen.project.project import Project
from mcpgreen.protocol.revisions import LATEST_HANDSHAKE
from mcpgreen.protocol.schemas.validator import compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

SUFFIX = ".test.yaml"
SCHEMA = "schemas/test.schema.json"
MAX_FILE_BYTES = 1 << 20
MAX_FILES = 500


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
    def start(self) -> Json:
        """What `ProjectClient` has to be told: equal for tests that can share a server."""
        return {"environment": self.environment, "revision": self.revision, "capabilities": self.capabilities}

    @property
    def snapshot(self) -> str:
        folder, file = os.path.split(self.file)
        return os.path.join(folder, "snapshots", file.removesuffix(SUFFIX), f"{_file_name(self.name)}.json")


def _file_name(name: str) -> str:
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
    schema = jsontext.loads(filled(SCHEMA))
    of_tests = compile_schema({**schema, "$ref": "#/definitions/test"}, noun="key")
    schema["properties"]["tests"]["items"] = {}
    of_files = compile_schema(schema, noun="key")
    tests: list[ToolTest] = []
    faults: list[str] = []
    for path in files:
        shown = os.path.relpath(path, project.root)
        shown = path if shown.startswith(os.pardir) else shown
        try:
            raw = content_of(path, MAX_FILE_BYTES)
            value = yaml_text.value_of(raw, is_strict=True)
        except (ProjectError, ValueError) as error:
            faults.append(f"{shown}: {error.reason if isinstance(error, ProjectError) else error}")
            continue
        problems = of_files.problems(value)
        faults += [f"{shown}:1: {problem}" for problem in problems]
        if not problems:
            marks, names = yaml_text.marks_in(raw), set[str]()
            for index, test in enumerate(value["tests"]):
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
    client = {**file.get("client", {}), **test.get("client", {})}
    environment = {**file.get("environment", {}), **test.get("environment", {})}
    return ToolTest(
        file=path,
        shown_file=shown,
        line=line,
        name=test["name"],
        tool=test.get("tool") or file["tool"],
        arguments=test.get("arguments", {}),
        environment={name: str(each) for name, each in environment.items()},
        revision=client.get("revision", LATEST_HANDSHAKE.name),
        capabilities=client.get("capabilities", "all"),
        answers=test.get("answers", {}),
        skip=test.get("skip"),
        expect=test.get("expect", {}),
    )
