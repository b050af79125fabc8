"""A script for the root of a project that serves it: for clients that take a command and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import sys

from mcpgreen.cli.clients.client_file import Refused
from mcpgreen.cli.clients.launch import Launch

FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

HEAD = """#!/bin/sh
# Serve the project that this file is in.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
set -- {program} serve --project-root "$root" "$@"
"""

PLAIN = """exec "$@"
"""

# What the profile prints must not reach the client, and it must not read what the client says.
WITH_ENVIRONMENT = """
# With the environment of a login shell, which programs with windows do not have.
case ${{SHELL:-}} in
  */bash | */zsh | */ksh | */dash | */sh) shell=$SHELL ;;
  *) shell=/bin/sh ;;
esac
exec 3<&0 4>&1
exec "$shell" -l -c 'exec "$0" "$@" <&3 >&4 3<&- 4>&-' "$@" </dev/null >&2
"""


def script(launch: Launch, *, has_environment: bool) -> str:
    program = shlex.join(launch.words[: launch.words.index("serve")])
    return (HEAD + (WITH_ENVIRONMENT if has_environment else PLAIN)).format(program=program)


def write(launch: Launch, root: str, *, has_environment: bool) -> int:
    """To a file at a terminal, else to stdout."""
    text = script(launch, has_environment=has_environment)
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return 0
    if not FILE_NAME.fullmatch(launch.name):
        sys.stderr.write(f"mcpgreen: {launch.name!r} is no name for a file; this is what would be in it.\n")
        sys.stdout.write(text)
        return 0
    path = os.path.join(root, f"{launch.name}.sh")
    try:
        with open(path, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o755)) as file:
            file.write(text)
    except OSError as error:
        raise Refused(path, f"it is left as it is: {error.strerror}") from None
    sys.stdout.write(f"Written: {path}\n")
    return 0
