"""The generated pages say what the tables say, and the messages on docs/errors.md are those that the server says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.reader import CHECKOUT

SOURCES = [*(CHECKOUT / "mcpgreen").rglob("*.py"), CHECKOUT / "scripts" / "mcpgreen"]

spec = importlib.util.spec_from_file_location("known_messages", CHECKOUT / "scripts" / "known_messages.py")
assert spec and spec.loader
known_messages = importlib.util.module_from_spec(spec)
sys.modules["known_messages"] = known_messages
spec.loader.exec_module(known_messages)
MESSAGES = [known.message for group in known_messages.MESSAGES.values() for known in group]


def build_docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "scripts" / "build_docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)


def test_the_pages_of_this_repository_are_current() -> None:
    """If this fails, run `make docs` and commit the result."""
    result = build_docs("--check")

    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_stale_and_missing_pages_are_named_and_left_alone(tmp_path: Path) -> None:
    assert build_docs(str(tmp_path)).returncode == 0
    assert build_docs("--check", str(tmp_path)).returncode == 0
    (tmp_path / "errors.md").write_text("old\n", encoding="utf-8")
    (tmp_path / "cli.md").unlink()

    result = build_docs("--check", str(tmp_path))

    assert result.returncode == 1
    named = {line.split()[0] for line in result.stdout.splitlines()}
    assert named == {str(tmp_path / "errors.md"), str(tmp_path / "cli.md")}
    assert (tmp_path / "errors.md").read_text(encoding="utf-8") == "old\n"
    assert not (tmp_path / "cli.md").exists()


@pytest.fixture(scope="module")
def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_in_the_sources(message: str, sources: str) -> None:
    pieces = [piece.strip() for piece in message.split("…") if len(piece.strip(" :;'.")) > 3]

    assert pieces
    assert [piece for piece in pieces if piece not in sources] == []
