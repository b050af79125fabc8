"""A reader who does what a page says, from the top to the bottom. The page is the fixture; its fenced blocks are taken
in order:

* a block with a path in its info string is written to that file, without the executable bit, which the page gives;
* a bash block without one is run, in one working directory after the other, and has to succeed;
* a json or text block right behind it is what it printed, with or without stderr; `…` stands for anything
  on a line, /home/ada for the reader's home; one marked `part` is only somewhere in it;
* a `text wire` block is a conversation with a server on the project as it is by then: `-->` is sent, `<--` has to come.
  With `stateless`, the page leaves the envelope out; a level of the log, as in `wire debug`, is that of the server;
* a `text log` block has lines that the server of the last conversation logged, in this order;
* a `json listed` block is a tool as the server lists it.

Other blocks are for the eye, or for tests of their own. Numbers that differ from run to run are not compared.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.programs import completed
from tests.support.questions import ALL
from tests.support.terminal import at_terminal
from tests.support.wire import Wire, clean_environment, command_of_tests, modern_meta

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PAGES = [CHECKOUT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted(DOCS.glob("*.md"))

FENCED = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBERS = re.compile(r"\b\d+ (?=ms|bytes)|(?<=process )\d+|(?<=call )\d+|, waited \d+ ms|\b\d+K[ \t]+")
HOME = "/home/ada"
STATE = "v1.…"
COMMAND_SECS = 60
WIDTH = 120  # of the terminal
QUESTIONS = [("Title [", "\n"), ("Description [", "\n")]  # at a terminal, the reader presses Return


class Block(NamedTuple):
    language: str
    info: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1)
        for found in FENCED.finditer(text)
    ]


def values_in(text: str) -> list[Any]:
    """The JSON values that stand one after the other in a text."""
    decoder = json.JSONDecoder()
    values = []
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:]
    return values


class Reader:
    def __init__(self, home: Path, *, has_terminal: bool = False, makes_executable: bool = False) -> None:
        self.home = self.place = home
        self._has_terminal = has_terminal
        self._makes_executable = makes_executable
        self._printed: tuple[str, str] | None = None  # stdout and stderr of the commands right before
        self._logged = ""
        self._own = home / ".reader"
        (self._own / "bin").mkdir(parents=True)
        (self._own / "bin" / "mcpgreen").symlink_to(command_of_tests())
        (self._own / "bin" / "python3").symlink_to(sys.executable)

    @property
    def printed(self) -> str:
        """What the last commands printed to stdout."""
        return self._printed[0] if self._printed else ""

    def use_our_packages(self) -> None:
        """Let tools find the packages of the tests: through a link, Python does not find its environment."""
        python = self._own / "bin" / "python3"
        python.unlink()
        python.write_text(f"#!/bin/sh\nexec '{sys.executable}' \"$@\"\n", encoding="utf-8")
        python.chmod(0o755)

    def read(self, page: Path) -> None:
        for block in blocks_of(page):
            print(f"{page.name}, line {block.line}")  # pytest shows it if the test fails
            self.take(block)

    def take(self, block: Block) -> None:
        word, *more = block.info.split() or [""]
        if "/" in block.info:
            self._write(block)
        elif word == "wire":
            self._converse(block, is_stateless="stateless" in more, level=[*more, "error"][0])
        elif word == "log":
            logged = iter(self._logged.splitlines())
            assert [line for line in comparable(block.text).splitlines() if line not in logged] == [], self._logged
        elif word == "listed":
            with Wire(self.place).greeted() as server:
                assert json.loads(block.text) in server.result("tools/list")["tools"]
        elif block.language == "bash" and not word:
            self._printed = self._run(block.text)
            return
        elif self._printed is not None and block.language in ("json", "text") and word in ("", "part"):
            self._compare(block, *self._printed)
            if word == "part":
                return
        self._printed = None

    def _write(self, block: Block) -> None:
        """Paths begin where the reader is, or at home if they begin with a folder there."""
        is_at_home = (self.home / Path(block.info).parts[0]).is_dir()
        target = (self.home if is_at_home else self.place) / block.info
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
        target.chmod(0o755 if self._makes_executable and block.text.startswith("#!") else 0o644)

    def _run(self, commands: str) -> tuple[str, str]:
        told = self._own / "place"
        script = f'set -euo pipefail\numask 022\n{commands}\npwd > "{told}"\n'
        variables = clean_environment(
            {
                "PATH": f"{self._own / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "HOME": str(self.home),
                "MCPGREEN_PYTHON": sys.executable,
                "NO_COLOR": "1",
            }
        )
        if self._has_terminal:
            answers = QUESTIONS if "mcpgreen new" in commands else []
            seen = at_terminal(
                ["-c", script], cwd=self.place, width=WIDTH, env=variables, answers=answers, program=["bash"]
            )
            status, printed, complaints = seen.status, seen.text, ""
        else:
            done = completed(["bash", "-c", script], cwd=self.place, env=variables, timeout=COMMAND_SECS)
            status, printed, complaints = done.returncode, done.stdout, done.stderr
        assert status == 0, printed + complaints
        self.place = Path(told.read_text(encoding="utf-8").strip())
        return printed.replace(str(self.home), HOME), complaints.replace(str(self.home), HOME)

    def _compare(self, block: Block, printed: str, complaints: str) -> None:
        if block.language == "json":
            assert values_in(printed) == values_in(block.text)
            return
        pattern = ".*".join(map(re.escape, comparable(block.text).split("…")))
        matches = re.search if block.info == "part" else re.fullmatch
        seen = [comparable(text) for text in (printed, printed + complaints)]
        assert any(matches(pattern, text) for text in seen), seen[1]

    def _converse(self, block: Block, *, is_stateless: bool, level: str) -> None:
        state = ""
        level = "error" if is_stateless else level
        with Wire(self.place, env={"MCPGREEN_STDERR_LEVEL": level}) as server:
            if not is_stateless:
                server.handshake(capabilities=ALL)
            lines = block.text.splitlines()
            for line in lines:
                arrow, text = line[:3], line[3:].replace(HOME, str(self.home))
                if arrow == "-->":
                    message = {"jsonrpc": "2.0", **json.loads(text.replace(STATE, state))}
                    if is_stateless:
                        message["params"]["_meta"] = modern_meta(capabilities=ALL)
                    server.send(message)
                    if not any(line.startswith("<--") for line in lines):
                        server.receive(lambda answer: "id" in answer)
                    continue
                heard = server.receive(lambda message: not message.get("method", "").endswith("/list_changed"))
                state = heard.get("result", {}).get("requestState", state)
                assert (arrow, as_on_a_page(heard, is_stateless=is_stateless)) == ("<--", json.loads(text))
            server.stop()
            self._logged = comparable(server.stderr)
            assert level != "error" or not self._logged


def comparable(text: str) -> str:
    return "\n".join(NUMBERS.sub("", line).rstrip() for line in text.strip().splitlines())


def as_on_a_page(message: dict[str, Any], *, is_stateless: bool) -> dict[str, Any]:
    result = message.get("result", {})
    if "requestState" in result:
        result["requestState"] = STATE
    if is_stateless:
        for name in ("_meta", "ttlMs", "cacheScope"):
            result.pop(name, None)
    return {key: value for key, value in message.items() if key != "jsonrpc"}
