"""The commands, a row each, in the order in which the first screen shows them.

A command has a text in `texts/`, which docopt parses and people read, and a module with a `run`. A new one is a row
here and these two files.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

Options = Mapping[str, Any]  # as docopt gives them


class Obeys(Protocol):
    def run(self, options: Options) -> int:
        """The exit status. Raises UsageError, and other errors of ours, which are told to the person."""


ANY = 1000  # words


class Command(NamedTuple):
    name: str
    module: str = ""  # below mcpgreen.cli; `serve` alone is served by `__main__`
    max_words: int = 0  # that may follow its name; more are a mistake
    words_need: str = ""  # the option without which there may be none
    needs: str = ""  # what it cannot do without, for a message
    other_names: tuple[str, ...] = ()

    def obeying(self) -> Obeys:
        return cast("Obeys", import_module(f"mcpgreen.cli.{self.module}"))


GROUPS: dict[str, tuple[Command, ...]] = {
    "Serve": (Command("serve", max_words=1, words_need="--http"),),
    "Connect": (Command("config", "clients.config"),),
    "Try": (
        Command("list", "trying.list_items", max_words=1),
        Command("run-tool", "trying.run_tool", max_words=ANY, needs="a NAME"),
        Command("read", "trying.read", max_words=1, needs="a URI"),
        Command("prompt", "trying.prompt", max_words=ANY, needs="a NAME"),
        Command("complete", "trying.complete", max_words=3, needs="REF and ARGUMENT"),
    ),
    "Make": (
        Command("new", "making.new", max_words=1),
        Command("init", "making.init"),
        Command("scaffold", "making.scaffold", max_words=2, needs="one of the kinds that its --help shows"),
        Command("wrap", "wrapping.wrap", max_words=ANY, needs="a command after --, or a file"),
    ),
    "Check": (
        Command("validate", "checking.validate"),
        Command("lint", "linting.lint"),
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
        Command("sdk-path", "sdk_path"),
        Command("completion", "completion", max_words=ANY, needs="bash, zsh or fish"),
    ),
}
COMMANDS = tuple(command for group in GROUPS.values() for command in group)
BY_NAME = {name: command for command in COMMANDS for name in (command.name, *command.other_names)}
