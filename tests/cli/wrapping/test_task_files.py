"""`mcpgreen wrap` on Makefiles, justfiles and package.json: a tool for each target, recipe and script."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.wrapping.justfiles import recipes_in
from mcpgreen.cli.wrapping.makefiles import targets_in
from mcpgreen.cli.wrapping.package_json import scripts_in
from mcpgreen.errors import ProjectError
from tests.cli.wrapping.test_wrap import call, text_of, validated, wrap
from tests.support.prerequisites import require_program
from tests.support.project import ProjectBuilder

MAKEFILE = """\
NAME ?= world
LOUD ?= # how loud
SECRET := $(shell touch evil)
OUT = $(shell touch evil2)

.PHONY: greet all clean lib/build

all: greet

greet: build.log ## Greet somebody
	@echo "Hello $(NAME)"

# Remove what was built,
# all of it.
clean:
	@rm -f build.log && echo clean

lib/build:
	@true

fail:
	@echo bad >&2; exit 3

build.log: main.c
	@touch $@

main.c:
	@touch $@

%.o: %.c
	cc $<

$(OUT)/x:
	true

define TEXT
inner: not a target
endef

greet: EXTRA = 1
double:: ; @echo $(LOUD)
"""

JUSTFILE = """\
set shell := ["bash", "-c"]
version := "1"
alias b := build

# Build it
build target='all' *flags:
    echo {{target}} {{flags}}

# Not this one
[private]
hidden:
    true

_also_hidden:
    true

[doc('Send it away')]
@send +names: build
    echo {{names}}

greet name greeting="a:b":
    echo {{greeting}} {{name}}
"""

PACKAGE = {
    "scripts": {
        "build": "node build.js",
        "prebuild": "rm -rf dist",
        "test:unit": "node --test",
        "//lint": "Look for mistakes",
        "lint": "eslint .",
        "-x": "evil",
        "odd": 5,
    },
    "scripts-info": {"build": "Build everything"},
}


@pytest.fixture
def made(project: ProjectBuilder) -> ProjectBuilder:
    require_program("make")
    project.write("Makefile", MAKEFILE)
    done = wrap(project, "--makefile", "Makefile")
    assert done.returncode == 0, done.stderr
    return project


def described(project: ProjectBuilder, name: str) -> dict[str, Any]:
    return json.loads(project.read(f"tools/{name}.meta.json"))  # type: ignore[no-any-return]


def test_targets_are_words_phony_or_documented(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")

    tasks = {task.name: task for task in targets_in(str(tmp_path / "Makefile"))}

    assert list(tasks) == ["all", "greet", "clean", "lib/build", "fail", "double"]
    assert tasks["greet"].text == "Greet somebody"
    assert tasks["clean"].text == "Remove what was built, all of it."
    assert [(each.name, each.text) for each in tasks["greet"].parameters] == [("NAME", "world by default.")]
    assert [(each.name, each.text) for each in tasks["double"].parameters] == [("LOUD", "how loud")]


@pytest.mark.parametrize(
    "recipe",
    ["$(X) file", "@$(X) file", "-@ $(X)", "cd here && $(X)", "true; $(X)", "true | $(X)", "A=1 $(X)", "sudo $(X)"],
)
def test_what_a_target_runs_is_no_argument(tmp_path: Path, recipe: str) -> None:
    """A client could have chosen the program: CC=/tmp/evil has nothing in it that a shell would read."""
    path = tmp_path / "Makefile"
    path.write_text(f"X ?= cc\nFLAGS ?= -O2\n\nbuild:\n\t{recipe} $(FLAGS)\n")

    assert [[each.name for each in task.parameters] for task in targets_in(str(path))] == [["FLAGS"]]


@pytest.mark.parametrize("name", ["SHELL", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKE", "PATH", "LD_PRELOAD"])
def test_what_make_itself_obeys_is_no_argument(tmp_path: Path, name: str) -> None:
    path = tmp_path / "Makefile"
    path.write_text(f"{name} ?= x\n\nbuild:\n\techo $({name})\n")

    assert [task.parameters for task in targets_in(str(path))] == [()]


def test_lines_are_kept_once_for_however_many_targets(tmp_path: Path) -> None:
    """A megabyte of them became gigabytes, and minutes."""
    path = tmp_path / "Makefile"
    names = " ".join(f"a{number}" for number in range(110))
    path.write_text(f"A ?= 1\n{names}:\n" + "\techo $(A)\n" * 20_000)

    tracemalloc.start()
    try:
        tasks = targets_in(str(path))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(tasks) == 110
    assert most_bytes < 10_000_000


@pytest.mark.parametrize(
    "text",
    ["a" + " " * 1_000_000, ("a" + " " * 5000 + "x:\n") * 200, "A ?= 1\nb:\n\t" + "A=;$(A)" * 140_000, ":" * 1_000_000],
    ids=["spaces", "lines of spaces", "references", "colons"],
)
def test_a_hostile_makefile_takes_little_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Makefile"
    path.write_text(text)
    began = time.process_time()

    targets_in(str(path))

    assert time.process_time() - began < 20


def test_recipes_have_their_parameters_and_comments(tmp_path: Path) -> None:
    (tmp_path / "justfile").write_text(JUSTFILE, encoding="utf-8")

    tasks = {task.name: task for task in recipes_in(str(tmp_path / "justfile"))}

    assert {name: task.text for name, task in tasks.items()} == {
        "build": "Build it",
        "send": "Send it away",
        "greet": "",
    }
    parameters = {
        name: [(each.name, each.is_required, each.is_repeated) for each in task.parameters]
        for name, task in tasks.items()
    }
    assert parameters == {
        "build": [("target", False, False), ("flags", False, True)],
        "send": [("names", True, True)],
        "greet": [("name", True, False), ("greeting", False, False)],
    }


def test_scripts_have_what_is_said_about_them(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps(PACKAGE), encoding="utf-8")

    tasks = {task.name: task.text for task in scripts_in(str(tmp_path / "package.json"))}

    assert tasks == {
        "build": "Build everything",
        "test:unit": "Run the script test:unit: node --test",
        "lint": "Look for mistakes",
    }


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"scripts": []}'])
def test_a_package_without_scripts_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text, encoding="utf-8")

    with pytest.raises(ProjectError):
        scripts_in(str(tmp_path / "package.json"))


def test_a_makefile_is_never_evaluated(made: ProjectBuilder) -> None:
    assert not list(made.root.glob("evil*"))


def test_a_target_is_run(made: ProjectBuilder) -> None:
    assert text_of(call(made, "make-greet")) == "Hello world\n"
    assert text_of(call(made, "make-greet", NAME="Ada")) == "Hello Ada\n"


def test_a_target_that_fails_says_why(made: ProjectBuilder) -> None:
    result = call(made, "make-fail")

    assert result["isError"]
    assert text_of(result).startswith("make failed with exit status 2.\nbad\n")


@pytest.mark.parametrize(
    "value", ["$(shell touch evil3)", "a; touch evil3", "`touch evil3`", "-x", "a b", "$$x", "a\nb"]
)
def test_a_value_that_a_shell_would_read_is_refused(made: ProjectBuilder, value: str) -> None:
    result = call(made, "make-greet", NAME=value)

    assert result["isError"]
    assert not (made.root / "evil3").exists()


def test_all_that_was_written_is_valid(made: ProjectBuilder) -> None:
    made.write("justfile", JUSTFILE)
    made.write("package.json", json.dumps(PACKAGE))
    assert wrap(made, "--justfile", "justfile").returncode == 0
    assert wrap(made, "--package-json", "package.json").returncode == 0

    assert validated(made)["warnings"] == 0
    assert described(made, "just-greet")["inputSchema"]["required"] == ["name"]
    assert described(made, "npm-test-unit")["description"].startswith("Run the script test:unit: node --test.")


def test_a_file_elsewhere_is_found_by_the_tool(project: ProjectBuilder) -> None:
    require_program("make")
    project.write("sub/rules.mk", "where: ## Say where we are\n\t@pwd\n")

    done = wrap(project, "--makefile", "rules.mk", "--name", "sub", cwd=project.root / "sub")

    assert done.returncode == 0, done.stderr
    assert f"{project.root / 'sub'}\n" in text_of(call(project, "sub-where"))


def test_a_recipe_is_run_with_its_words(project: ProjectBuilder) -> None:
    project.program("bin/just", "printf '[%s]' \"$@\"")
    project.write("justfile", JUSTFILE)
    wrap(project, "--justfile", "justfile")

    assert text_of(call(project, "just-greet", name="Ada", greeting="Hi")) == "[greet][Ada][Hi]"
    assert text_of(call(project, "just-send", names=["a", "b"])) == "[send][a][b]"


def test_a_script_is_run_by_npm(project: ProjectBuilder) -> None:
    project.program("bin/npm", "printf '[%s]' \"$@\"")
    project.write("package.json", json.dumps(PACKAGE))
    wrap(project, "--package-json", "package.json")

    assert text_of(call(project, "npm-build")) == "[run][--silent][build]"
    assert text_of(call(project, "npm-build", arguments=["a"])) == "[run][--silent][build][--][a]"


def test_what_exists_is_left_and_what_is_new_is_added(made: ProjectBuilder) -> None:
    before = made.read("tools/make-greet.py")
    made.write("Makefile", MAKEFILE + "\nlater: ; @true\n")

    done = wrap(made, "--makefile", "Makefile")

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert "make-greet.py exists, and is left as it is.\n" in done.stderr
    assert made.read("tools/make-greet.py") == before
    again = wrap(made, "--makefile", "Makefile")
    assert (again.returncode, again.stdout) == (1, "")


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--makefile", None, "it cannot be read: No such file or directory"),
        ("--makefile", "# nothing\n", "it has nothing that a tool could be made of"),
        ("--makefile", "a" * 1_100_000, "it has more than 1048576 bytes"),
        ("--justfile", "\0\1", "it has nothing that a tool could be made of"),
        ("--package-json", "{", "it is not JSON"),
    ],
)
def test_a_file_that_is_none_is_told_of(
    project: ProjectBuilder, option: str, content: str | None, message: str
) -> None:
    if content is not None:
        project.write("file", content)

    done = wrap(project, option, "file")

    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
