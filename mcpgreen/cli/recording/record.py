"""`mcpgreen record`: become a server that records its session. It can stand in a client's configuration."""

from __future__ import annotations

import os

from mcpgreen.cli.clients.launch import program_words
from mcpgreen.cli.commands import Options
from mcpgreen.errors import UsageError

VARIABLE = "MCPGREEN_RECORD"


def run(options: Options) -> int:
    words = options["WORD"]
    if words[0] != "serve" or any(word.startswith("--http") for word in words):
        raise UsageError("record needs mcpgreen serve over stdio: write -- serve --project-root DIR.")
    program = program_words(os.environ)
    os.environ[VARIABLE] = os.path.abspath(os.path.expanduser(options["FILE"]))
    os.execv(program[0], [*program, *words])
