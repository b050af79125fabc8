"""Which folders are skills, and how their front matter is read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.catalog.descriptions import yaml_text
from mcpgreen.catalog.item_kinds import SOURCES, look_at_disk
from mcpgreen.catalog.items import Discovery
from mcpgreen.catalog.tree_scan import Memory, Pace, Tree
from mcpgreen.project.project import Project
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually

Change = Callable[[ProjectBuilder], Any]

GOOD = "---\nname: this\ndescription: What it is for.\n---\n"
ALIASES = "a: &a [x, x, x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9))
BRACKETS = "[" * 65 + "]" * 65
MIB = 1 << 20


def look(project: ProjectBuilder, earlier: Memory | None = None, pace: Pace | None = None) -> tuple[Discovery, Tree]:
    served, source = Project(str(project.root), {}), SOURCES["resources"]
    tree = look_at_disk(served, source, None, only_below=None, pace=pace or Pace(), earlier=earlier or {})
    return source.read(served, tree, None)["skills"], tree


def main_file(text: str | bytes) -> Change:
    raw = text if isinstance(text, bytes) else text.encode()
    return lambda project: (project.root / "skills/this/SKILL.md").write_bytes(raw)


def main_with(field: str) -> Change:
    return main_file(GOOD.replace("---\n", f"---\n{field}\n", 1))


def sized(size: int) -> Change:
    return lambda project: os.truncate(project.write("skills/this/data.bin", ""), size)


def many(number: int) -> Change:
    return lambda project: [project.write(f"skills/this/{index}.txt", "") for index in range(number)]


def file(path: str) -> Change:
    return lambda project: project.write(f"skills/{path}", "# Text\n")


def renamed(project: ProjectBuilder) -> Path:
    main = project.root / "skills/this/SKILL.md"
    main.rename(main.with_name("skill.md"))
    return main


# fmt: off
REFUSED: list[tuple[Change, str]] = [
    (main_file("# This\n"), "must begin with front matter"),
    (main_file("---\nname: this\n"), "must begin with front matter"),
    (main_file("\n" + GOOD), "must begin with front matter"),
    (main_with("#" * 65_536), "65536 bytes at most"),
    (main_with("a: ["), "not valid YAML"),
    (main_file(b"---\nname: this\ndescription: \xff\n---\n"), "utf-8"),
    (main_file("---\n- name\n---\n"), "must be an object"),
    (main_with(ALIASES), "alias"),
    (main_with(f"a: {BRACKETS}"), "nested deeper than 64"),
    (main_with("a: !!python/name:os.system"), "not valid YAML"),
    (main_with("a: .inf"), "not valid YAML"),
    (main_with("name: this"), "name appears twice"),
    (main_file(GOOD.replace("this", "that")), 'name must be this, as its folder, found "that"'),
    (main_file(GOOD.replace("name: this\n", "")), "name must be this"),
    (main_file(GOOD.replace("this", "1")), "name must be this"),
    (main_file("---\nname: this\n---\n"), "description must be a text"),
    (main_file(GOOD.replace("What it is for.", '" "')), "description must be a text"),
    (main_file(GOOD.replace("What", "x" * 1024)), "description must be a text of at most 1024 characters"),
    (renamed, "it has no SKILL.md"),
    (lambda project: renamed(project).symlink_to("skill.md"), "it has no SKILL.md"),
    (many(512), "more than 512 files"),
    (sized(16 * MIB - len(GOOD) + 1), "larger than 16777216 bytes together"),
    (file(f"this/{'d/' * 17}x"), "nested deeper than 16 folders"),
]
SERVED: list[Change] = [
    main_file(GOOD.removesuffix("\n")), main_file(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()),
    main_file(GOOD.replace("What it is for.", "x" * 1024)), many(511), sized(16 * MIB - len(GOOD)),
    file(f"this/{'d/' * 16}x"), file("this/parts/SKILL.md"), file("README.md"),
]
PLAIN_VALUES = {
    "yes": "yes", "True": True, "010": 10, "0o17": 15, "0x1F": 31, "1e3": 1000.0, "1_000": "1_000", "1:30": "1:30",
    "2026-01-02": "2026-01-02", "1.10": 1.1, "'1.10'": "1.10", "~": None, "": None, "<<": "<<",
}
# fmt: on


@pytest.mark.requirement("S-12")
@pytest.mark.parametrize(("change", "reason"), [*REFUSED, *((change, "") for change in SERVED)])
def test_a_skill_that_breaks_a_rule_is_left_out_and_no_other(
    project: ProjectBuilder, change: Change, reason: str
) -> None:
    project.skill("other")
    project.write("skills/this/SKILL.md", GOOD)
    change(project)

    found, _ = look(project)

    assert [skill.name for skill in found.items] == (["other"] if reason else ["other", "this"])
    assert len(found.warnings) == bool(reason)
    for warning in found.warnings:
        assert warning.startswith("skills/this") and warning.endswith("; the skill is left out")
        assert reason in warning


def test_a_skill_with_a_closed_folder_is_left_out(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("skills/this/SKILL.md", GOOD)
    closed, scandir = str(project.write("skills/this/closed/x", "").parent), os.scandir

    def refuse(path: str) -> Any:  # root could read it whatever its mode
        if path == closed:
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found, _ = look(project)

    assert (found.items, "no permission" in found.warnings[0]) == ([], True)


@pytest.mark.requirement("S-03")
def test_names_outside_the_rules_are_refused(project: ProjectBuilder) -> None:
    names = ["This", "a_b", "-a", "a-", "a--b", "a.b", "é", "x" * 65]
    for name in names:
        project.skill(name)

    found, _ = look(project)

    assert (found.items, len(found.warnings)) == ([], len(names))
    assert all("must have a name of up to 64 characters" in warning for warning in found.warnings)


def test_there_are_limits_for_all_skills_together(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(258):
        project.skill(f"s{number:03}")

    found, _ = look(project)
    assert [skill.name for skill in found.items][-1] == "s255"
    assert found.warnings == ["skills: it has more than 256 skills or 10000 files; s256 and all after it are left out"]
    monkeypatch.setattr("mcpgreen.catalog.skills.MAX_FILES_IN_ALL", 9)
    assert len(look(project)[0].items) == 9


@pytest.mark.requirement("S-02")
def test_plain_values_are_read_as_other_programs_read_them() -> None:
    """Clients compare the front matter with what they read themselves, and most have a parser for YAML 1.2."""
    for text, value in PLAIN_VALUES.items():
        found = yaml_text.value_of(f"x: {text}\n".encode(), is_strict=True)["x"]
        assert (found, type(found)) == (value, type(value))


def test_a_file_is_hashed_in_slices_and_once(project: ProjectBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgreen.catalog.tree_scan.STRETCH_SECS", 0)
    turns: list[None] = []
    project.write("skills/this/SKILL.md", GOOD)
    path = project.write("skills/this/data.bin", "x" * 8 * MIB)
    eventually(lambda: time.time_ns() - path.stat().st_ctime_ns > 60_000_000)
    _, tree = look(project, pace=Pace(lambda: turns.append(None)))
    assert len(turns) >= 32
    memory = {place: (stamp, {**found, "digest": "known"}) for place, (stamp, found) in tree.memory.items()}

    second, _ = look(project, memory)
    os.utime(path, ns=(0, 0))
    third, _ = look(project, memory)

    digests = [[each["digest"] for each in found.items[0].definition["resources"]] for found in (second, third)]
    assert digests[0] == ["known", "known"]
    assert [digest == "known" for digest in digests[1]] == [True, False]
