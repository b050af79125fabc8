"""Every example does what its page says, and has nothing for `validate` and `lint` to find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.harness.ladder import EXAMPLES, Example, all_examples, find
from examples.harness.workplace import copy_of
from tests.docs.reader import FENCED
from tests.examples.support import found_by, our_python, played, printed
from tests.support.prerequisites import require_program
from tests.support.wire import clean_environment, nursery

pytestmark = pytest.mark.usefixtures("default_tasks")
LADDER = all_examples()
FIRST_LINE = re.compile(rb"#!(?:/usr/bin/env |/\S*/)(\w+)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

each_example = pytest.mark.parametrize("example", LADDER, ids=lambda example: example.name)


@pytest.fixture(autouse=True)
def _launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in our_python().items():
        monkeypatch.setenv(name, value)


@each_example
def test_the_conversation_on_the_page_takes_place(example: Example) -> None:
    require_programs(example)

    assert played(example) == example.conversation()


@each_example
def test_what_the_page_sends_is_answered_as_it_says(example: Example) -> None:
    require_programs(example)

    for each in example.sent():
        assert printed(find(each.example_id), each) == each.printed


@each_example
def test_nothing_is_found_in_an_example(example: Example) -> None:
    require_programs(example)
    with copy_of(example) as project:
        found = [found_by(command, project) for command in ("validate", "lint")]

    assert [re.findall(r"^0: |^[✗⚠].*|, 0 warnings$", each, re.MULTILINE) for each in found] == [
        ["0: ", ", 0 warnings"],
        ["0: ", ", 0 warnings"],
    ], found


@each_example
def test_a_page_names_every_program_that_its_scripts_need(example: Example) -> None:
    assert set(interpreters(example)) <= {*example.needs(), "sh"}


def test_the_index_lists_every_example_in_order() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| \[\d\d [^]]+\]\(([^)]+)/README\.md\)", index, re.MULTILINE) == [
        example.name for example in LADDER
    ]


def test_the_ladder_has_no_gap() -> None:
    assert [int(example.name[:2]) for example in LADDER] == list(range(len(LADDER)))


@pytest.mark.parametrize(
    "page", [EXAMPLES / "README.md", *(each.readme for each in LADDER)], ids=lambda page: page.parent.name
)
def test_what_a_page_links_to_exists(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))  # a link in a conversation is not for the reader
    targets = [target for target in LINK.findall(text) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_wrapped_command_is_what_wrap_writes(tmp_path: Path) -> None:
    with copy_of(find("wrapped-command")) as project:
        arguments = ["wrap", "--name", "tally", "--output", str(tmp_path), "--", "bin/tally.py"]
        done = nursery().run(arguments, clean_environment(), str(project), timeout=120)
        written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
        kept = {path.name: path.read_text(encoding="utf-8") for path in (project / "tools").iterdir()}

    assert done.returncode == 0, done.stderr
    assert written == kept


def require_programs(example: Example) -> None:
    for program in example.needs():
        require_program(program)


def interpreters(example: Example) -> Iterator[str]:
    for path in sorted(example.folder.rglob("*")):
        if path.is_file() and (found := FIRST_LINE.match(path.read_bytes())):
            yield found[1].decode()
