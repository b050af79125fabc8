"""`validate --fix`: what is mended, and what is left alone."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.checking.correct_project import faults_in, validated
from tests.support.project import ProjectBuilder


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_line_ends_are_mended_and_the_mode_stays(correct: ProjectBuilder) -> None:
    for name in ("tools/greet.sh", "tools/count.py"):
        path = correct.root / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        path.chmod(0o750)
    assert {finding.code for finding in faults_in(validated(correct))} == {"crlf"}
    report = validated(correct, "--fix")

    assert (faults_in(report), report.fixes) == ([], 2)
    for name in ("tools/greet.sh", "tools/count.py"):
        assert b"\r" not in (correct.root / name).read_bytes()
        assert mode_of(correct.root / name) == 0o750
    assert not [path for path in (correct.root / "tools").iterdir() if path.name.startswith(".")]


def test_texts_keep_their_line_ends(correct: ProjectBuilder) -> None:
    text = correct.root / "prompts" / "letter.txt"
    text.write_bytes(b"Dear {{to}}\r\n")
    (correct.root / "tools" / "data.bin").write_bytes(b"\0\r\n")

    assert validated(correct, "--fix").fixes == 0
    assert text.read_bytes() == b"Dear {{to}}\r\n"


def test_what_a_umask_of_000_makes_is_one_finding_and_is_mended(correct: ProjectBuilder) -> None:
    for directory, _, files in os.walk(correct.root):
        os.chmod(directory, 0o777)
        for name in files:
            path = Path(directory, name)
            path.chmod(mode_of(path) | 0o022)
    (fault,) = faults_in(validated(correct))
    assert (fault.code, fault.fix) == ("writable", "run mcpgreen validate --fix")
    report = validated(correct, "--fix")

    assert faults_in(report) == []
    assert report.fixes > 5
    assert validated(correct, "--fix").fixes == 0


def test_every_folder_on_the_way_is_mended(correct: ProjectBuilder) -> None:
    """Also one that only a link leads through."""
    (correct.root / "kinds").mkdir()
    (correct.root / "kinds/tools").symlink_to("../tools")
    (correct.root / "tools/deep/er").mkdir(parents=True)
    for name in (".", "kinds", "tools", "tools/deep", "tools/deep/er"):
        (correct.root / name).chmod(0o777)
    correct.write("server.d/env", "MCPGREEN_TOOLS_DIR=kinds/tools\n").chmod(0o644)
    report = validated(correct, "--fix")

    assert (faults_in(report), report.fixes) == ([], 5)


def test_a_project_that_cannot_be_opened_is_mended_first(correct: ProjectBuilder) -> None:
    (correct.root / "server.d" / "env").chmod(0o666)
    (fault,) = faults_in(validated(correct))
    assert (fault.code, fault.file) == ("writable", "server.d/env")

    assert faults_in(validated(correct, "--fix")) == []


def test_what_a_link_leads_to_is_left_alone(correct: ProjectBuilder, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sh"
    outside.write_bytes(b"#!/bin/sh\r\n")
    outside.chmod(0o666)
    (correct.root / "tools" / "linked.sh").symlink_to(outside)
    (correct.root / "tools" / "again.sh").symlink_to("greet.sh")
    validated(correct, "--fix")

    assert outside.read_bytes() == b"#!/bin/sh\r\n"
    assert mode_of(outside) == 0o666
    assert (correct.root / "tools" / "again.sh").is_symlink()


def test_without_the_option_nothing_is_written(correct: ProjectBuilder) -> None:
    path = correct.root / "tools" / "greet.sh"
    path.write_bytes(b"#!/bin/bash\r\n")
    path.chmod(0o664)
    validated(correct)

    assert (path.read_bytes(), mode_of(path)) == (b"#!/bin/bash\r\n", 0o664)


def test_a_script_is_not_made_executable_through_a_link(correct: ProjectBuilder) -> None:
    """It got the mode of the link, 0777, and was refused from then on."""
    script = correct.root / "tools" / "lib" / "real.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho\n", encoding="utf-8")
    script.chmod(0o644)
    (correct.root / "tools" / "linked.sh").symlink_to("lib/real.sh")
    (correct.root / "tools" / "linked.meta.json").write_text('{"description": "Linked"}', encoding="utf-8")
    validated(correct, "--fix")

    assert mode_of(script) == 0o644
