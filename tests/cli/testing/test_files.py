"""The format of tests: what is wrong in a file, what an expectation finds, the JUnit report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from mcpgreen.cli.testing.client import Outcome
from mcpgreen.cli.testing.expecting import ABSENT, problems_with, value_at
from mcpgreen.cli.testing.files import ToolTest, find_files, read_tests
from mcpgreen.cli.testing.junit import write_junit
from mcpgreen.cli.testing.running import Result
from mcpgreen.project.project import Project


def read(root: Path, text: str) -> tuple[list[ToolTest], list[str]]:
    (root / "tests").mkdir()
    (root / "tests/a.test.yaml").write_text(text, encoding="utf-8")
    project = Project(str(root), {})
    return read_tests(find_files(project, []), project)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tool: x\ntests:\n  - {name: a, expct: {}}\n", "3: unexpected key 'expct' (did you mean 'expect'?); known"),
        (
            "tool: x\ntests:\n  - name: a\n    expect:\n      txt: b\n",
            "3: unexpected key 'txt' in expect (did you mean 'text'?); known",
        ),
        ("tool: x\ntool: y\ntests: []\n", " tool appears twice"),
        ("tests:\n  - {name: a}\n", "2: the test needs a tool, here or at the top of the file"),
        ("tool: x\ntests:\n- {name: a}\n- {name: a}\n", "4: another test in this file has this name"),
        ("tool: x\n", "1: missing required key 'tests'"),
        ("tool: x\ntests: {a: 1}\n", "1: tests must be array, got object"),
        ("tool: x\ntest: []\ntests: []\n", "1: unexpected key 'test' (did you mean 'tests'?)"),
        ("- tests\n", "1: the value must be object, got array"),
        ("tool: x\ntests:\n  - {name: a, arguments: [1]}\n", "3: arguments must be object, got array [1]"),
        ("tool: x\ntests:\n  - {name: a, client: {revision: '1999'}}\n", "3: client.revision must be one of"),
        ("tool: x\ntests:\n  - {name: a, expect: {text: {match: x}}}\n", "3: expect.text matches none of the 3"),
        ("tool: [x\n", " "),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, fault: str) -> None:
    faults = read(tmp_path, text)[1]
    assert len(faults) == 1, faults
    assert faults[0].startswith(f"tests/a.test.yaml:{fault}"), faults


def test_a_file_has_values_for_all_its_tests(tmp_path: Path) -> None:
    text = "tool: x\nenvironment: {A: 1, B: b}\nclient: {capabilities: none}\ntests:\n"
    text += "  - name: one\n  - {name: two, tool: y, environment: {B: c}, client: {revision: '2024-11-05'}}\n"
    one, two = read(tmp_path, text)[0]
    assert (one.tool, one.line) == ("x", 5)
    assert one.start == {"environment": {"A": "1", "B": "b"}, "capabilities": "none"}
    assert (two.tool, two.line) == ("y", 6)
    assert two.start == {"environment": {"A": "1", "B": "c"}, "capabilities": "none", "revision": "2024-11-05"}


def the_test(expect: dict[str, Any], directory: str = "") -> ToolTest:
    return ToolTest(f"{directory}/a.test.yaml", "a.test.yaml", 1, "n", "t", {}, {}, expect)


RESULT = {"content": [{"type": "text", "text": "one\ntwo\n"}], "structuredContent": {"n": 1, "a.b": [True]}}
MET: dict[str, Any] = {
    "text": ["one\ntwo\n", {"contains": "two"}, {"matches": "^one$|^two"}, ["one\ntwo", {"contains": "one"}]],
    "json": [{"structuredContent.n": 1.0, 'structuredContent["a.b"][0]': True}, {"content[0].text": {"matches": "w"}}],
    "schema": [{"type": "object", "required": ["n"]}],
    "progress": [True, 2, 1],
    "exitCode": [0],
    "isError": [False],
}
NOT_MET: dict[str, Any] = {
    "text": ["one", {"contains": "three"}, {"matches": "^wo"}, {"matches": "("}, ["one\ntwo", "one"]],
    "json": [{"structuredContent.n": True}, {"structuredContent.m": None}, {"content[1]": {}}, {"n..x": 1}],
    "schema": [{"type": "object", "required": ["m"]}, {"type": "nothing"}],
    "progress": [False, 3],
    "exitCode": [1],
    "isError": [True],
    "error": ["one\ntwo"],
}


@pytest.mark.parametrize(
    ("key", "value", "is_met"),
    [(key, value, True) for key, values in MET.items() for value in values]
    + [(key, value, False) for key, values in NOT_MET.items() for value in values],
)
def test_an_expectation_is_met_or_the_difference_is_shown(key: str, value: Any, is_met: bool) -> None:
    outcome = Outcome({**RESULT, "_meta": {"exitCode": 0}}, progress=[{}, {}])
    problems = problems_with(outcome, the_test({key: value}), "/nowhere")
    assert (problems == []) == is_met, problems
    assert all(
        "found" in problem or key == "schema" or "is not a regular" in problem
        for problem in problems
        if "(-" not in problem
    )


def test_what_nobody_expects_is_a_problem() -> None:
    error = {"code": -32602, "message": "Unknown tool: x"}
    assert problems_with(Outcome(error=error), the_test({}), "") == [
        "expected a result\n   found an error: Unknown tool: x"
    ]
    assert problems_with(Outcome(error=error), the_test({"error": {"contains": "Unknown"}}), "") == []
    assert problems_with(Outcome({"content": [], "isError": True}), the_test({}), "") != []
    asked = Outcome(RESULT, unanswered=["Sure?"], unused=["name"])
    assert len(problems_with(asked, the_test({}), "")) == 2


def test_a_snapshot_is_compared_apart_from_what_is_left_out(tmp_path: Path) -> None:
    test = the_test({"snapshot": {"without": ["n"]}}, str(tmp_path))
    at_first = Outcome({**RESULT, "structuredContent": {"n": 1, "path": f"{tmp_path}/x"}})
    later = Outcome({**RESULT, "structuredContent": {"n": 2, "path": f"{tmp_path}/x"}})
    other = Outcome({**RESULT, "structuredContent": {"n": 2, "path": "/elsewhere"}})

    assert "mcpgreen test --update writes it" in problems_with(at_first, test, str(tmp_path))[0]
    assert problems_with(at_first, test, str(tmp_path), updates=True) == []
    assert str(tmp_path) not in (tmp_path / "snapshots/a/n.json").read_text(encoding="utf-8")
    assert problems_with(later, test, str(tmp_path)) == []
    (problem,) = problems_with(other, test, str(tmp_path))
    assert problem == 'snapshot: structuredContent.path: expected "<project>/x"\n   found "/elsewhere"'


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), ('["c.d"][1].e', 2), ("a", {"b": 1}), ("a[0]", ABSENT), ("x", ABSENT), ('["c.d"][7]', ABSENT)],
)
def test_a_path_leads_to_a_value(path: str, value: Any) -> None:
    assert value_at({"a": {"b": 1}, "c.d": [0, {"e": 2}]}, path) == value


# As in the schemas of Jenkins' plugin and of Ant's reports: attributes that must be there, and those that may.
ATTRIBUTES = {
    "testsuites": (set(), set()),
    "testsuite": (
        {"name", "timestamp", "hostname", "tests", "failures", "errors", "time"},
        {"id", "package"},
    ),
    "testcase": ({"name", "classname", "time"}, set()),
    "failure": ({"type"}, {"message"}),
    **dict.fromkeys(("properties", "system-out", "system-err"), (set(), set())),
}
CHILDREN = {
    "testsuites": r"(testsuite )*",
    "testsuite": r"properties (testcase )*system-out system-err ",
    "testcase": r"(failure )?",
}


def test_the_junit_report_has_the_form_that_ci_servers_read(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    test = the_test({})
    failed = Result(test, Outcome(secs=0.25), ["text: \x1b[31m<b>\0 & \ud800"])
    other = Result(test._replace(shown_file="b.test.yaml"), Outcome())
    write_junit(str(report), [Result(test, Outcome(secs=0.5)), failed, other], began_at=0)

    top = ElementTree.parse(report).getroot()
    for element in top.iter():
        required, allowed = ATTRIBUTES[element.tag]
        assert required <= element.attrib.keys() <= required | allowed, element.attrib
        assert re.fullmatch(CHILDREN.get(element.tag, ""), "".join(f"{child.tag} " for child in element))
    first, second = top
    counts = [first.get(name) for name in ("tests", "failures", "errors", "time", "timestamp")]
    assert counts == ["2", "1", "0", "0.750", "1970-01-01T00:00:00"]
    assert second.get("name") == "b.test.yaml"
    assert first.findtext("testcase/failure") == "a.test.yaml:1\ntext: \ufffd[31m<b>\ufffd & \ufffd"
