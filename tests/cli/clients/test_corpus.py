"""Every file of the corpus, there and back: another parser reads the entry, and everything else stays."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpgreen.cli.clients.install import Change, Refused, Target, change_entry
from mcpgreen.cli.clients.launch import Launch
from mcpgreen.cli.clients.table import BY_WORD, FORMATS
from tests.cli.clients.corpus import CASES, Case

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LAUNCH = Launch(
    name="demo",
    description="A server: with # and 'quotes'",
    command="/opt/my tools/mcpgreen",
    arguments=("serve", "--project-root", '/home/ü "x"\\y'),
    env={"MCPGREEN_ROOTS": "/a:/b", "MCPGREEN_ODD": "\u2028 \x7f \U0001f600 \x01 yes: #"},
    tool_secs=30.0,
    left_out=(),
)
WITH_COMMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
WORD = re.compile(rb"[^\s{}\[\]]+")
BEFORE_END = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def read(format: str, content: bytes) -> Any:
    """As strict as the format is."""
    text = content.decode("utf-8-sig")
    if format == "toml":
        return tomllib.loads(text)
    if format == "yaml":
        return yaml.safe_load(text)
    return json.loads(text)


def read_lenient(content: bytes) -> Any:
    text = WITH_COMMENTS.sub(lambda found: found[1] or " ", content.decode("utf-8-sig"))
    return json.loads(BEFORE_END.sub(lambda found: found[1] or " ", text))


def values_for(case: Case, content: bytes) -> Any:
    client = BY_WORD[case.client]
    return read_lenient(content) if client.entries.has_comments else read(client.format, content)


def entries_in(case: Case, document: Any) -> dict[str, Any]:
    client = BY_WORD[case.client]
    root = (document or {}).get(client.entries.root)
    return {item["name"]: item for item in root or []} if client.entries.is_list else dict(root or {})


def target_of(case: Case, path: Path, name: str = "demo") -> Target:
    client = BY_WORD[case.client]
    return Target(str(path), FORMATS[client.format], client.spot(name))


def entry_of(case: Case, name: str = "demo") -> Any:
    return BY_WORD[case.client].entry(LAUNCH._replace(name=name))


def nothing(change: Change) -> None:
    del change


def ids(cases: list[Case]) -> list[str]:
    return [case.name for case in cases]


NAMES = ("demo", "second", "third")
GOOD = [case for case in CASES if not case.refused]
BAD = [case for case in CASES if case.refused]


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 40
    assert len(set(ids(CASES))) == len(CASES)


@pytest.mark.parametrize("case", GOOD, ids=ids(GOOD))
def test_an_entry_is_read_and_everything_else_stays(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "place" / "file"
    path.parent.mkdir()
    path.write_bytes(case.content)
    entry = entry_of(case)

    change = change_entry(target_of(case, path), entry, show=nothing)

    installed = path.read_bytes()
    assert change.backup is not None
    assert Path(change.backup).read_bytes() == case.content
    document = values_for(case, installed)
    assert entries_in(case, document)["demo"] == entry
    if case.content.strip(b"\xef\xbb\xbf \n") and not case.content.startswith((b"//", b"/*", b"#", b"---\n")):
        before = values_for(case, case.content) or {}
        others = {name: value for name, value in entries_in(case, before).items() if name != "demo"}
        assert {**entries_in(case, document), "demo": None} == {**others, "demo": None}
        root = BY_WORD[case.client].entries.root
        assert {**document, root: None} == {**before, root: None}
    if not case.replaces:
        assert_lines_stay(case, installed)
    if b"\r\n" in case.content:
        assert b"\n" not in installed.replace(b"\r\n", b"")

    again = change_entry(target_of(case, path), entry, show=nothing)
    assert (again.has_effect, path.read_bytes()) == (False, installed)

    change_entry(target_of(case, path), None, show=nothing)
    left = path.read_bytes() if path.exists() else Path(change.backup).read_bytes()
    assert "demo" not in entries_in(case, values_for(case, left) if left.strip() else {})
    assert_lines_stay(case, left)


def assert_lines_stay(case: Case, content: bytes) -> None:
    """Every line is still there, in its order; of one that has something before or behind it now, every word."""
    words = iter(WORD.findall(content.replace(b",", b"").replace(b"{}", b"")))
    lost = [word for word in WORD.findall(case.content.replace(b",", b"").replace(b"{}", b"")) if word not in words]
    assert case.replaces or not lost


@pytest.mark.parametrize(
    ("client", "before", "after"),
    [
        (
            "vscode",
            '{\n\t"servers": {\n\t\t"a": 1 // mine\n\t}\n}',
            '{\n\t"servers": {\n\t\t"a": 1, // mine\n\t\t"demo": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}',
        ),
        (
            "zed",
            '{\r\n    "a": 1,\r\n}',
            '{\r\n    "a": 1,\r\n    "context_servers": {\r\n        "demo": {\r\n'
            '            "command": "x"\r\n        }\r\n    },\r\n}',
        ),
        ("cursor", '{"mcpServers":{"a":{}}}', '{"mcpServers":{"a":{},"demo":{"command":"x"}}}'),
        ("codex", "# c\n[mcp_servers.a]", '# c\n[mcp_servers.a]\n\n[mcp_servers.demo]\ncommand = "x"\n'),
        (
            "goose",
            "extensions:\n    a: 1 # mine\n# c\nb: 2\n",
            'extensions:\n    demo:\n      command: "x"\n    a: 1 # mine\n# c\nb: 2\n',
        ),
    ],
)
def test_an_entry_looks_as_its_neighbours_do(client: str, before: str, after: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(before.encode())
    change_entry(target_of(Case("", client, b""), path), {"command": "x"}, show=nothing)
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize("case", BAD, ids=ids(BAD))
def test_what_cannot_be_done_right_is_left_alone(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "place" / "file"
    path.parent.mkdir()
    path.write_bytes(case.content)

    with pytest.raises(Refused, match=re.escape(case.refused)) as refusal:
        change_entry(target_of(case, path), entry_of(case), show=nothing)

    assert len(str(refusal.value)) < 500
    assert path.read_bytes() == case.content
    assert [each.name for each in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("case", GOOD, ids=ids(GOOD))
def test_entries_go_in_any_order(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(case.content)
    for name in ("demo", "second", "third"):
        change_entry(target_of(case, path, name), entry_of(case, name), show=nothing)
    document = values_for(case, path.read_bytes())
    others = {name: entry for name, entry in entries_in(case, document).items() if name not in NAMES}
    assert set(NAMES) <= entries_in(case, document).keys()

    for name in ("demo", "third", "second"):
        change_entry(target_of(case, path, name), None, show=nothing)

    left = values_for(case, path.read_bytes()) if path.exists() else {}
    root = BY_WORD[case.client].entries.root
    assert entries_in(case, left) == others
    assert {**document, root: None} == {**left, root: None} or not path.exists()
