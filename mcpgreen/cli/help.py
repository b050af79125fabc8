"""What people read about the commands: the first screen, and the text of each command.

A text begins with `mcpgreen NAME: SUMMARY`, and the first screen shows the summaries.
"""

from __future__ import annotations

import os

from mcpgreen.cli.commands import GROUPS, Command

TEXTS = os.path.join(os.path.dirname(__file__), "texts")

FIRST_SCREEN = """mcpgreen: serve a folder of scripts as an MCP server.

Usage: mcpgreen COMMAND [OPTIONS]

{commands}

mcpgreen COMMAND --help shows a command with its options and an example. Almost
all commands take --project-root DIR; without it, the project is the one around
the current directory. mcpgreen --version prints the version.
"""


def text_of(command: Command) -> str:
    with open(os.path.join(TEXTS, f"{command.name}.txt"), encoding="utf-8") as file:
        return file.read()


def summary_of(command: Command) -> str:
    first_line = text_of(command).partition("\n")[0]
    return first_line.partition(": ")[2]


def first_screen() -> str:
    blocks = []
    for title, commands in GROUPS.items():
        rows = [f"  {command.name:<13}{summary_of(command)}" for command in commands]
        blocks.append("\n".join([f"{title}:", *rows]))
    return FIRST_SCREEN.format(commands="\n\n".join(blocks))
