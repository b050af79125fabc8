"""Two git repositories with the same content, one on a server that can leave files out and one that cannot."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.prerequisites import require_program
from tests.support.programs import completed

BIG_BYTES = 600 * 1024


def git(directory: Path, *arguments: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{part}": "x@y" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
    }
    done = completed([require_program("git"), *arguments], cwd=directory, env=env, check=True)
    return done.stdout.strip()


def build_repositories(directory: Path) -> None:
    """`plain.git`, and `sparing.git` that serves commits without files.

    Two commits on `main`, the first one tagged `v1`; a third on `feature/x`. The files of `main`: README.md, run.sh,
    docs/Größe & more.txt, big.bin; beside them a link, a submodule and the directory docs.
    """
    work = directory / "work"
    (work / "docs").mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch=main")
    (work / "README.md").write_text("first\n", encoding="utf-8")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "-m", "one")
    git(work, "tag", "v1")
    (work / "README.md").write_text("second\n", encoding="utf-8")
    (work / "docs" / "Größe & more.txt").write_text("spaces\n", encoding="utf-8")
    (work / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (work / "run.sh").chmod(0o755)
    (work / "big.bin").write_bytes(os.urandom(BIG_BYTES))
    (work / "link").symlink_to("README.md")
    git(work, "add", ".")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{git(work, 'rev-parse', 'HEAD')},module")
    git(work, "commit", "--quiet", "-m", "two")
    git(work, "checkout", "--quiet", "-b", "feature/x")
    (work / "README.md").write_text("feature\n", encoding="utf-8")
    git(work, "commit", "--quiet", "-am", "three")
    git(work, "checkout", "--quiet", "main")
    for name, filters in (("plain.git", "false"), ("sparing.git", "true")):
        git(directory, "clone", "--quiet", "--bare", "work", name)
        git(directory / name, "config", "uploadpack.allowFilter", filters)
