"""The commands, one row each, in the order of the overview that `mcpgreen` prints.

A command has a text in `texts/`, which docopt parses and people read, and a function that runs it. A new command is a
row here, its text, and the function. `texts/mcpgreen.txt` is the first screen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, cast

TEXTS = os.path.join(os.path.dirname(__file__), "texts")

Options = Mapping[str, Any]  # as docopt gives them
# Returns the exit status. Raises UsageError, and other errors of ours, which are printed.
Run = Callable[[Options], int]
ANY = 1000  # words


def text_named(name: str) -> str:
    with open(os.path.join(TEXTS, f"{name}.txt"), encoding="utf-8") as file:
        return file.read()


class Command(NamedTuple):
    name: str
    function: str = ""  # MODULE below mcpgreen.cli, or MODULE:FUNCTION if that is not `run`; `__main__` has `serve`
    max_words: int = 0  # how many may follow its name
    words_need: str = ""  # the option that must be given if there are words
    needs: str = ""  # what it cannot do without, for a message
    other_names: tuple[str, ...] = ()

    def text(self) -> str:
        """Return what `--help` prints. It begins with `mcpgreen NAME: SUMMARY`."""
        return text_named(self.name)

    def summary(self) -> str:
        return self.text().partition("\n")[0].partition(": ")[2]

    def load(self) -> Run:
        module, _, function = self.function.partition(":")
        return cast("Run", getattr(import_module(f"mcpgreen.cli.{module}"), function or "run"))


GROUPS: dict[str, tuple[Command, ...]] = {
    "Serve": (
        Command("serve", max_words=1, words_need="--http"),
        Command("worker", "fleet.commands:run_worker"),
        Command("fleet", "fleet.status", max_words=2, needs="status, tasks or drain NAME"),
    ),
    "Connect": (Command("config", "clients.config"),),
    "Try": (
        Command("list", "trying.requests:run_list", max_words=1),
        Command("run-tool", "trying.requests:run_tool", max_words=ANY, needs="a NAME"),
        Command("tasks", "trying.tasks", max_words=2, needs="list, show ID, result ID, cancel ID or clear"),
        Command("read", "trying.requests:run_read", max_words=1, needs="a URI"),
        Command("prompt", "trying.requests:run_prompt", max_words=ANY, needs="a NAME"),
        Command("complete", "trying.requests:run_complete", max_words=3, needs="REF and ARGUMENT"),
    ),
    "Make": (
        Command("new", "making.scaffold:run_new", max_words=1),
        Command("init", "making.scaffold:run_init"),
        Command("scaffold", "making.scaffold", max_words=2, needs="one of the kinds that its --help shows"),
        Command("wrap", "wrapping.wrap", max_words=ANY, needs="a command after --, or a file; --update needs a file"),
        Command("deps", "deps", max_words=1),
    ),
    "Check": (
        Command("validate", "checking.validate"),
        Command("lint", "linting"),
        Command("doctor", "doctor.doctor"),
        Command("health", "checking.health", other_names=("ready", "--health", "--ready")),
        Command("scan", "registry"),
        Command("registry", "registry", max_words=1, needs="refresh or status"),
    ),
    "Share": (
        Command("bundle", "sharing.bundle"),
        Command("vendor", "sharing.vendor"),
        Command("server-json", "sharing.server_json"),
    ),
    "More": (
        Command("schema", "schema", max_words=1),
        Command("sdk-path", "schema:run_sdk_path"),
        Command("completion", "completion", max_words=ANY, needs="bash, zsh or fish"),
    ),
}
COMMANDS = tuple(command for group in GROUPS.values() for command in group)
BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.other_names)}


def first_screen() -> str:
    blocks = []
    for title, commands in GROUPS.items():
        blocks.append("\n".join([f"{title}:", *(f"  {each.name:<13}{each.summary()}" for each in commands)]))
    return text_named("mcpgreen").format(commands="\n\n".join(blocks))
