"""Which scripts name a Python whose start can be spared, and which environments let it be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.running.warm_python import Words, interpreter_of, lasting, unusual_variables

PLAIN = {
    b"#!/usr/bin/env python3\n": ("/usr/bin/env", "python3"),
    b"#!/usr/bin/env python\n": ("/usr/bin/env", "python"),
    b"#! /usr/bin/env  python3.12 \n": ("/usr/bin/env", "python3.12"),
    b"#!/bin/env\tpython3\n": ("/bin/env", "python3"),
    b"#!/usr/bin/python3\n": ("/usr/bin/python3",),
    b"#!/opt/pythons/3.11/bin/python3.11\nimport this\n": ("/opt/pythons/3.11/bin/python3.11",),
    b"#!/home/ada/.venv/bin/python\n\n": ("/home/ada/.venv/bin/python",),
}
OTHERS = [
    b"",
    b"\n",
    b"print(1)\n",
    b" #!/usr/bin/env python3\n",
    b"\xef\xbb\xbf#!/usr/bin/env python3\n",
    b"#!\n",
    b"#!/usr/bin/env\n",
    b"#!/usr/bin/env python3",  # no newline: nothing but a first line
    b"#!/usr/bin/env python3\r\nprint(1)\r\n",
    b"#!/usr/bin/env python3 -u\n",
    b"#!/usr/bin/env -S python3 -u\n",
    b"#!/usr/bin/env -S python3\n",
    b"#!/usr/bin/env -i python3\n",
    b"#!/usr/bin/env NAME=1 python3\n",
    b"#!/usr/bin/env -S uv run --script\n",
    b"#!/usr/bin/env uv\n",
    b"#!/usr/bin/env ./python3\n",
    b"#!/usr/bin/env bin/python3\n",
    b"#!/usr/bin/env /usr/bin/python3\n",
    b"#!/usr/bin/python3 -O\n",
    b"#!/usr/bin/python3 -m\n",
    b"#!/usr/bin/env python2\n",
    b"#!/usr/bin/python2.7\n",
    b"#!/usr/bin/env python4\n",
    b"#!/usr/bin/env pypy3\n",
    b"#!/usr/bin/env ipython\n",
    b"#!/usr/bin/env python3-config\n",
    b"#!/usr/bin/env python3.12t\n",
    b"#!/usr/bin/env xonsh\n",
    b"#!/usr/bin/time python3 tool\n",
    b"#!/bin/sh\n",
    b"#!/usr/bin/env python3 " + b" " * 5000 + b"\n",  # longer than the kernel reads
]


def words_of(tmp_path: Path, content: bytes, *, before: tuple[str, ...] = ()) -> Words | None:
    script = tmp_path / "tool.py"
    script.write_bytes(content)
    return interpreter_of(str(script), [*before, str(script)])


@pytest.mark.parametrize(("content", "words"), PLAIN.items())
def test_a_first_line_that_names_a_python_is_plain(tmp_path: Path, content: bytes, words: tuple[str, ...]) -> None:
    assert words_of(tmp_path, content) == words


@pytest.mark.parametrize("content", OTHERS)
def test_other_first_lines_are_left_to_a_fresh_start(tmp_path: Path, content: bytes) -> None:
    assert words_of(tmp_path, content) is None


@pytest.mark.parametrize("before", [("python3",), ("/usr/bin/python3.11",), ("/usr/bin/env", "python3")])
def test_a_command_that_names_a_python_is_plain(tmp_path: Path, before: tuple[str, ...]) -> None:
    """Whatever the first line says: the kernel does not read it."""
    assert words_of(tmp_path, b"#!/bin/sh\n", before=before) == before


@pytest.mark.parametrize("before", [("sh",), ("python3", "-u"), ("python3", "-m"), ("env", "A=1", "python3")])
def test_other_commands_are_left_to_a_fresh_start(tmp_path: Path, before: tuple[str, ...]) -> None:
    assert words_of(tmp_path, b"#!/usr/bin/env python3\n", before=before) is None


def test_a_command_with_arguments_is_left_to_a_fresh_start(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_bytes(b"#!/usr/bin/env python3\n")

    assert interpreter_of(str(script), [str(script), "--verbose"]) is None


def test_what_is_no_file_has_no_interpreter(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    for path in (tmp_path, tmp_path / "fifo", tmp_path / "missing"):
        assert interpreter_of(str(path), [str(path)]) is None


def test_variables_of_a_call_do_not_last() -> None:
    """Nor does what may be a secret: all later scripts have in memory what lasts."""
    env = {b"PATH": b"/bin", b"MCP_SDK": b"x", b"MCPGREEN_CALL": b"1", b"TRACEPARENT": b"00", b"PYTHONPATH": b"/x"}
    payloads = (
        b"MCP_TOOL_ARGS_JSON",
        b"MCP_TOOL_META_JSON",
        b"MCP_AUTH_JSON",
        b"MCP_REQUEST_STATE",
        b"MCP_INPUT_RESPONSES",
    )
    secrets = (b"API_KEY", b"AWS_SECRET_ACCESS_KEY", b"MCP_TOKEN", b"SSH_AUTH_SOCK", b"https_proxy")

    assert lasting({**env, **dict.fromkeys(payloads + secrets, b"secret")}) == {b"PATH": b"/bin", b"PYTHONPATH": b"/x"}


@pytest.mark.parametrize(
    "names", [[], ["PATH", "LANG"], ["PYTHONPATH"], ["PYTHONUTF8", "PYTHONHASHSEED"], ["PYENV_VERSION"]]
)
def test_variables_that_a_helper_obeys_are_ordinary(names: list[str]) -> None:
    assert not unusual_variables({name.encode(): b"1" for name in names})


@pytest.mark.parametrize("name", ["PYTHONINSPECT", "PYTHONSTARTUP", "PYTHON_FROZEN_MODULES", "PYTHONSOMETHINGNEW"])
def test_other_variables_of_python_are_left_to_a_fresh_start(name: str) -> None:
    assert unusual_variables({b"PATH": b"/bin", b"PYTHONPATH": b"/x", name.encode(): b"1"})
