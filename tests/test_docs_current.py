"""The generated pages say what the tables say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgreen.settings.table import ROWS

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = ("settings.md", "errors.md", "revisions.md", "cli.md")


def build_docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "scripts" / "build_docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("docs")
    result = build_docs(str(directory))
    assert (result.returncode, result.stderr) == (0, "")
    return directory


def test_the_pages_of_this_repository_are_current() -> None:
    """If this fails, run `make docs` and commit the result."""
    result = build_docs("--check")

    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_fresh_pages_pass_the_check(docs: Path) -> None:
    assert build_docs("--check", str(docs)).returncode == 0


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_first_where_it_comes_from(docs: Path, page: str) -> None:
    first, *_ = (docs / page).read_text(encoding="utf-8").splitlines()

    assert "Generated from mcpgreen/" in first
    assert "make docs" in first


def test_stale_and_missing_pages_are_named_and_left_alone(docs: Path, tmp_path: Path) -> None:
    shutil.copytree(docs, tmp_path, dirs_exist_ok=True)
    (tmp_path / "errors.md").write_text("old\n", encoding="utf-8")
    (tmp_path / "cli.md").unlink()

    result = build_docs("--check", str(tmp_path))

    assert result.returncode == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == [
        str(tmp_path / "errors.md"),
        str(tmp_path / "cli.md"),
    ]
    assert (tmp_path / "errors.md").read_text(encoding="utf-8") == "old\n"
    assert not (tmp_path / "cli.md").exists()


def test_every_setting_and_variable_is_on_the_page(docs: Path) -> None:
    text = (docs / "settings.md").read_text(encoding="utf-8")

    for row in ROWS:
        assert f"| `{row.name}` |" in text
        assert row.doc in text
        assert all(f"`{variable}`" in text for variable in row.variables)


@pytest.mark.parametrize("page", ["settings.md", "errors.md", "revisions.md"])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(docs: Path, page: str) -> None:
    width = 0
    for line in (docs / page).read_text(encoding="utf-8").splitlines():
        cells = line.replace("\\|", "").count("|")
        width = (width or cells) if cells else 0
        assert cells == width, line
