"""What `validate`, `lint`, `doctor`, `list` and `scaffold` do with skills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.checking.correct_project import correct_project, faults_in, linted, validated
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder

HEAD = "---\nname: letters\ndescription: Write letters.\n---\n"
MAIN = "skills/letters/SKILL.md"
TEXT = (
    "Call the tool `greet`, see [a](more/a%20b.md#top), [b](more/), [c](https://example.org), [d](#a), `[x](no.md)`.\n"
)
MORE = "Back to [the skill](../SKILL.md).\n\n```\n[x](no.md)\n```\n"


def head_with(field: str) -> str:
    return HEAD.replace("---\n", f"---\n{field}\n", 1)


@pytest.fixture
def correct(tmp_path: Path) -> ProjectBuilder:
    project = correct_project(tmp_path / "project")
    project.write(MAIN, head_with("allowed-tools: greet Bash(git:*) add") + TEXT)
    project.write("skills/letters/more/a b.md", MORE)
    return project


def test_a_correct_skill_gives_no_finding(correct: ProjectBuilder) -> None:
    assert (faults_in(validated(correct)), faults_in(linted(correct))) == ([], [])


# fmt: off
LEFT_OUT = [
    ("skill-name", MAIN, HEAD.replace("letters", "notes")),
    ("skill-description", MAIN, HEAD.replace("Write", "x" * 1024)),
    ("skill-description", MAIN, "---\nname: letters\n---\n"),
    ("front-matter", MAIN, "# Letters\n"),
    ("front-matter", MAIN, "---\n[]\n---\n"),
    ("yaml-syntax", MAIN, HEAD.replace("Write", "&a [*a]")),
    ("skill-name", "skills/Letters", HEAD),
    ("skill-missing", "skills/empty", ""),
    ("skill-large", "skills/big", HEAD),
]
IN_TEXTS = [
    ("skill-link", HEAD + "See [this](other.md).\n", 5),
    ("skill-link", HEAD + "\nSee ![this](/etc/passwd).\n", 6),
    ("skill-link", HEAD + "See [this](../../tools/greet.sh).\n", 5),
    ("skill-tool", HEAD + "Then use the tool `greeet`.\n", 5),
    ("skill-tool", head_with("allowed-tools: greet send-mail"), 2),
    ("skill-tool", head_with("allowed-tools: [greet, send-mail]"), 2),
]
# fmt: on


@pytest.mark.parametrize(("code", "place", "text"), LEFT_OUT)
def test_a_skill_that_is_left_out_is_an_error(correct: ProjectBuilder, code: str, place: str, text: str) -> None:
    if place != MAIN:
        correct.write(f"{place}/x", "x" * (16 << 20 if code == "skill-large" else 1))
    if text:
        correct.write(MAIN if place == MAIN else f"{place}/SKILL.md", text)

    for report in (validated(correct), linted(correct)):
        [finding] = faults_in(report)
        assert (finding.level, finding.code, finding.subject, bool(finding.fix)) == ("error", code, place, True)


@pytest.mark.parametrize(("code", "text", "line"), IN_TEXTS)
def test_lint_reads_the_texts(correct: ProjectBuilder, code: str, text: str, line: int | None) -> None:
    correct.write(MAIN, text)

    [finding] = faults_in(linted(correct))

    assert (finding.level, finding.code, finding.file) == ("warning", code, MAIN)
    assert (finding.position and finding.position.line) == line
    assert faults_in(validated(correct)) == []


def test_a_new_skill_is_listed_and_read(correct: ProjectBuilder) -> None:
    assert "skills/tidy-up/SKILL.md" in mcpgreen("scaffold", "skill", "tidy-up", cwd=correct.root).stdout
    correct.write("skills/odd/SKILL.md", "")

    listed = json.loads(mcpgreen("list", "skills", "--json", cwd=correct.root).stdout)

    assert [skill["frontmatter"]["name"] for skill in listed["skills"]] == ["letters", "tidy-up"]
    assert [each["path"] for each in listed["leftOut"]] == ["skills/odd/SKILL.md"]
    assert mcpgreen("read", "tidy-up", cwd=correct.root).stdout.startswith("---\nname: tidy-up\n")
    assert "3 tools, 1 resource, 1 template, 2 skills, 1 prompt" in mcpgreen("doctor", cwd=correct.root).stdout
    for name in ("Tidy", "tidy_up", "tidy--up", "letters"):
        assert mcpgreen("scaffold", "skill", name, cwd=correct.root).returncode == 1


def test_a_project_without_skills_says_nothing_of_them(tmp_path: Path) -> None:
    project = correct_project(tmp_path / "project")

    assert "skills" not in json.loads(mcpgreen("list", "--json", cwd=project.root).stdout)
    assert json.loads(mcpgreen("list", "skills", "--json", cwd=project.root).stdout)["skills"] == []
    assert "skill" not in mcpgreen("scan", cwd=project.root).stdout
