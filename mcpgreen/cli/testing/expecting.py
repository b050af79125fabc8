"""Compare what came of a call with what a test expects, and say what differs. Also compares JSON values for others.

Problems are texts of one or more lines for people: what was expected, what was found, and a small diff of long texts.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any

from mcpgreen.cli.testing.client import Outcome
from mcpgreen.cli.testing.files import ToolTest
from mcpgreen.errors import ProjectError
from mcpgreen.files.regular_files import content_of, replacing
from mcpgreen.protocol.schemas.validator import BadSchema, compile_schema
from mcpgreen.text import jsontext
from mcpgreen.text.json_types import Json

MAX_SNAPSHOT_BYTES = 16 << 20
MAX_PROBLEMS = 20  # that are named
SHOWN_CHARS = 300
DIFF_LINES = 40
MAX_DIFFED_LINES = 500  # the time of a diff grows with the square
STEP = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)')
ABSENT: Any = object()
ANY, PROJECT = "<any>", "<project>"  # stand-ins
# What a text can be compared with, if it need not be equal.
MATCHERS: dict[str, Callable[[str, str], object]] = {
    "contains": lambda part, text: part in text,
    "matches": lambda pattern, text: re.search(pattern, text, re.MULTILINE),
}


def problems_with(outcome: Outcome, test: ToolTest, root: str, *, updates: bool = False) -> list[str]:
    """Return what differs from the expectations of a test. With `updates`, its snapshot is written, not compared."""
    if updates and test.expect.get("snapshot"):
        os.makedirs(os.path.dirname(test.snapshot), exist_ok=True)
        with replacing(test.snapshot, mode=0o644) as file:
            file.write(jsontext.pretty(_snapshot_of(outcome, test, root)).encode("utf-8", "surrogatepass"))
    problems = list(islice(_problems(outcome, test, root), MAX_PROBLEMS + 1))
    return problems[:MAX_PROBLEMS] + ["..."] * (len(problems) > MAX_PROBLEMS)


def _problems(outcome: Outcome, test: ToolTest, root: str) -> Iterator[str]:
    expect, result = test.expect, outcome.result
    for each in outcome.unanswered:
        yield f"answers: the tool asked “{each}”, and the test has no answer to it"
    for each in outcome.unused:
        yield f"answers: the tool did not ask for “{each}”"
    if "error" in expect:
        yield from _text_mismatches("error", ABSENT if outcome.error is None else outcome.text, expect["error"])
    elif outcome.error is None:
        for each in differences(expect.get("isError", False), bool(result.get("isError")), "isError"):
            yield f"{each}: {_shown(outcome.text)}"
    elif not expect.get("snapshot"):
        yield f"expected a result\n   found an error: {outcome.text}"
        return
    if "exitCode" in expect:
        yield from differences(expect["exitCode"], outcome.exit_code, "exitCode")
    if "text" in expect:
        yield from _text_mismatches("text", outcome.text, expect["text"])
    for path, wanted in expect.get("json", {}).items():
        yield from _mismatches(path, value_at(result, path), wanted)
    if "schema" in expect:
        try:
            found = compile_schema(expect["schema"], noun="member").problems(outcome.structured)
        except BadSchema as error:
            found = [str(error)]
        yield from (f"schema: {each}" for each in found)
    count, wanted = len(outcome.progress), expect.get("progress")
    if (wanted is False and count) or (wanted and count < wanted):
        yield f"progress: expected {'none' if wanted is False else f'at least {int(wanted)}'}\n   found {count}"
    if expect.get("snapshot"):
        yield from _snapshot_problems(_snapshot_of(outcome, test, root), test.snapshot, root)


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path such as `content[0].text` or `structuredContent["a.b"]`, or ABSENT."""
    for name, index, word in STEP.findall(path):
        try:
            value = value[int(index)] if index and isinstance(value, list) else value[name or word]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def _text_mismatches(what: str, text: str, wanted: Any) -> Iterator[str]:
    for each in wanted if isinstance(wanted, list) else [wanted]:
        yield from _mismatches(what, text, each.rstrip("\n") if isinstance(each, str) else each)


def _mismatches(what: str, found: Any, wanted: Any) -> Iterator[str]:
    is_text = isinstance(wanted, dict) and bool(wanted) and wanted.keys() <= MATCHERS.keys()
    if found is ABSENT or not is_text or (isinstance(found, dict) and found.keys() & wanted.keys()):
        yield from differences(wanted, found, what)
        return
    text = found if isinstance(found, str) else jsontext.dumps(found).decode("ascii")
    for name, each in wanted.items():
        try:
            if not MATCHERS[name](str(each), text):
                yield f"{what}: expected a text that {name} {_shown(each)}\n   found {_shown(found)}"
        except re.error as error:
            yield f"{what}: {each} is not a regular expression: {error}"


def _snapshot_of(outcome: Outcome, test: ToolTest, root: str) -> Json:
    """Return what is compared: the error, or the result without `_meta`. Of members that the test leaves out, only that
    they are there."""
    rules = test.expect["snapshot"]
    without = rules.get("without", ()) if isinstance(rules, dict) else ()
    kept = {name: value for name, value in outcome.result.items() if name not in ("_meta", "resultType")}
    snapshot: Json
    snapshot, _ = plain({"error": outcome.error} if outcome.error else kept, without, [(re.escape(root), PROJECT)])
    return snapshot


def _snapshot_problems(found: Json, path: str, root: str) -> Iterator[str]:
    try:
        wanted = jsontext.loads(content_of(path, MAX_SNAPSHOT_BYTES))
    except (ProjectError, ValueError) as error:
        reason = error.reason if isinstance(error, ProjectError) else error
        yield f"snapshot: {os.path.relpath(path, root)}: {reason}; mcpgreen test --update writes it"
    else:
        yield from (f"snapshot: {each}" for each in differences(wanted, found))


def plain(
    value: Any, members: Collection[str], texts: Iterable[tuple[str | re.Pattern[str], str]]
) -> tuple[Any, list[str]]:
    """Return a copy with stand-ins for what is different each time, and the values of the members with these names."""
    values: list[str] = []

    def stand_in(_: Json, name: str, value: Any) -> Any:
        if name in members:
            values.append(str(value))
            return ANY
        if isinstance(value, str):
            for pattern, instead in texts:
                value = re.sub(pattern, instead, value)
        return value

    return jsontext.rewritten(value, stand_in), values


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield what differs between two JSON values, with the path of each place. 1 is 1.0, but not true."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in {**wanted, **found}:
            inner = f'{path}["{name}"]' if re.search(r'[.\[\]"]', name) else f"{path}.{name}".lstrip(".")
            yield from differences(wanted.get(name, ABSENT), found.get(name, ABSENT), inner)
    elif isinstance(wanted, list) and isinstance(found, list):
        for index in range(max(len(wanted), len(found))):
            one, other = (each[index] if index < len(each) else ABSENT for each in (wanted, found))
            yield from differences(one, other, f"{path}[{index}]")
    elif wanted is ABSENT:
        yield f"{path}: expected nothing\n   found {_shown(found)}"
    elif found is ABSENT:
        yield f"{path}: expected {_shown(wanted)}\n   found nothing there"
    elif isinstance(wanted, bool) != isinstance(found, bool) or wanted != found:
        if isinstance(wanted, str) and isinstance(found, str) and "\n" in wanted + found:
            yield "\n".join([f"{path}: (- expected, + found)", *_diff(wanted, found)])
        else:
            yield f"{path}: expected {_shown(wanted)}\n   found {_shown(found)}"


def _shown(value: Any) -> str:
    text = jsontext.pretty(value).strip() if isinstance(value, str) else jsontext.dumps(value).decode("ascii")
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _diff(wanted: str, found: str) -> Iterator[str]:
    """Yield the lines of a small diff, from the first line that differs."""
    before, after = wanted.split("\n"), found.split("\n")
    pairs = enumerate(zip(before, after, strict=False))
    first = next((number for number, (one, other) in pairs if one != other), min(len(before), len(after)))
    shown = slice(max(0, first - 1), first + MAX_DIFFED_LINES)
    lines = difflib.unified_diff(before[shown], after[shown], n=1, lineterm="")
    yield from (f"   {line[:SHOWN_CHARS]}" for line in islice(lines, 3, DIFF_LINES))
