"""The three commands: what they are given, what they print, and their exit statuses. Their texts are in their files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import NoReturn

from examples.harness import fitness
from examples.harness.ladder import CONVERSATION, SENT, Example, Sent, UnknownExample, all_examples, find
from examples.harness.playing import Play, scrubbed
from examples.harness.sending import BadLine, Sending
from examples.harness.wire import Silence, Wire
from examples.harness.workplace import NoServer, copy_of, serving

NOT_ANSWERED, WRONG_USE, INTERRUPTED = 1, 2, 130


def main(command: Callable[[list[str], str], int], text: str | None) -> NoReturn:
    """A command as a program: quiet when somebody stops it, or does not read on."""
    try:
        status = command(sys.argv[1:], text or "")
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would complain at its end
        status = NOT_ANSWERED
    raise SystemExit(status)


def run(arguments: list[str], text: str) -> int:
    name = "examples/run"
    wanted, flags = _parted(name, arguments, text, ("--all", "--list", "--write"))
    if "--list" in flags:
        print("\n".join(example.name for example in all_examples()))
        return 0
    examples = all_examples() if "--all" in flags else _found(name, wanted)
    if not examples:
        _leave(name, f"which example? Give a number or a name; {name} --list shows all of them.", WRONG_USE)
    status = 0
    for example in examples:
        if len(examples) > 1:
            print(f"== {example.name}", flush=True)
        if lacking := [program for program in example.needs() if shutil.which(program) is None]:
            print(f"{name}: {example.name} needs {', '.join(lacking)}; see examples/check-env.", file=sys.stderr)
            status = NOT_ANSWERED
            continue
        try:
            _play(example, writes="--write" in flags)
        except Silence as error:
            print(f"{name}: {example.name}: {error}", file=sys.stderr)
            status = NOT_ANSWERED
        except NoServer as error:
            _leave(name, str(error), NOT_ANSWERED)
    return status


def send(arguments: list[str], text: str) -> int:
    name = "examples/send"
    given, flags = _parted(name, arguments, text, ("--raw",))
    if not given:
        _leave(name, "which example? Give a number or a name; examples/run --list shows all of them.", WRONG_USE)
    (example,) = _found(name, given[:1])
    lines = given[1:] or [line.strip() for line in sys.stdin if line.strip()]
    try:
        sending = Sending(lines, is_raw="--raw" in flags)
        with copy_of(example) as project, serving(project) as server:
            for answer in sending.answers(Wire(server)):
                print(answer, flush=True)
    except BadLine as error:
        _leave(name, str(error), WRONG_USE)
    except (NoServer, Silence) as error:
        _leave(name, str(error), NOT_ANSWERED)
    return 0


def check_env(arguments: list[str], text: str) -> int:
    name = "examples/check-env"
    wanted, _ = _parted(name, arguments, text, ())
    report = fitness.report_on(_found(name, wanted) or all_examples())
    print("\n".join(report.lines))
    return 0 if report.is_good else 1


def _play(example: Example, *, writes: bool) -> None:
    heard = []
    with copy_of(example) as project, serving(project) as server:
        for line in Play(example.steps(), Wire(server), project).lines():
            print(line, flush=True)
            heard.append(f"{scrubbed(line, project)}\n")
    if writes:
        example.rewrite(CONVERSATION, ["".join(heard)])
        example.rewrite(SENT, [_printed(find(sent.example_id), sent) for sent in example.sent()])


def _printed(example: Example, sent: Sent) -> str:
    """What `examples/send` prints, as a page has it."""
    with copy_of(example) as project, serving(project) as server:
        answers = Sending(sent.lines, is_raw=sent.is_raw).answers(Wire(server))
        return "".join(f"{scrubbed(answer, project)}\n" for answer in answers)


def _parted(name: str, arguments: list[str], text: str, known: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Words and flags. `--help` is answered here."""
    if "--help" in arguments or "-h" in arguments:
        print(text.strip())
        raise SystemExit(0)
    flags = [each for each in arguments if each.startswith("-")]
    for flag in flags:
        if flag not in known:
            _leave(name, f"{flag} is unknown; see {name} --help.", WRONG_USE)
    return [each for each in arguments if each not in flags], flags


def _found(name: str, wanted: list[str]) -> list[Example]:
    try:
        return [find(each) for each in wanted]
    except UnknownExample as error:
        _leave(name, str(error), WRONG_USE)


def _leave(name: str, reason: str, status: int) -> NoReturn:
    print(f"{name}: {reason}", file=sys.stderr)
    raise SystemExit(status)
