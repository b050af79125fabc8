"""What becomes of a file around its content: links, modes, backups, others who write to it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.clients import install as installing
from mcpgreen.cli.clients.install import Change, Refused, Target, change_entry
from mcpgreen.cli.clients.table import BY_WORD, FORMATS

ENTRY = {"command": "/bin/mcpgreen", "args": ["serve"], "env": {"A": "b"}}
OTHER = {**ENTRY, "env": {"A": "c"}}
BEFORE = b'{\n  "mcpServers": {"x": {}}\n}\n'


class Desk:
    """A client's file, and somebody who installs into it."""

    def __init__(self, directory: Path, client: str = "cursor") -> None:
        self.path = directory / "place" / "mcp.json"
        self.path.parent.mkdir()
        self.client = BY_WORD[client]
        self.seen: list[Change] = []

    def target(self, name: str = "demo", path: Path | None = None) -> Target:
        return Target(str(path or self.path), FORMATS[self.client.format], self.client.spot(name))

    def install(self, name: str = "demo", *, path: Path | None = None, entry: Any = ENTRY, **more: Any) -> Change:
        return change_entry(self.target(name, path), entry, show=self.seen.append, **more)

    def uninstall(self, name: str = "demo", *, path: Path | None = None, **more: Any) -> Change:
        return change_entry(self.target(name, path), None, show=self.seen.append, **more)

    def servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads(self.path.read_bytes())["mcpServers"]
        return servers

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.parent.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_that_we_made_vanishes_unless_others_added_to_it(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "mcp.json"
    change = desk.install(path=path)
    assert (change.before, change.backup) == (None, None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    desk.uninstall(path=path)
    assert list(path.parent.iterdir()) == []

    desk.install(path=path)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "theme": "dark"}), encoding="utf-8")
    desk.uninstall(path=path)
    assert json.loads(path.read_bytes()) == {"theme": "dark", "mcpServers": {}}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_file_and_backup_keep_the_mode(desk: Desk, mode: int) -> None:
    desk.path.write_bytes(BEFORE)
    desk.path.chmod(mode)
    backup = desk.install().backup
    assert backup is not None
    assert {stat.S_IMODE(os.stat(path).st_mode) for path in (desk.path, backup)} == {mode}
    desk.uninstall()
    assert stat.S_IMODE(desk.path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_and_backup_keep_the_owner(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    os.chown(desk.path, 1234, 4321)
    backup = desk.install().backup
    assert backup is not None
    assert {(os.stat(path).st_uid, os.stat(path).st_gid) for path in (desk.path, backup)} == {(1234, 4321)}


def test_a_link_stays_one(desk: Desk, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_bytes(BEFORE)
    desk.path.symlink_to("../dotfiles/mcp.json")

    change = desk.install()

    assert desk.path.is_symlink()
    assert (change.path, change.backup) == (str(real), f"{real}.mcpgreen-backup")
    assert "demo" in desk.servers()
    desk.uninstall()
    assert (desk.path.is_symlink(), real.read_bytes()) == (True, BEFORE)


def test_a_link_to_nothing_leads_to_a_new_file(desk: Desk, tmp_path: Path) -> None:
    desk.path.symlink_to(tmp_path / "later.json")
    desk.install()
    assert (tmp_path / "later.json").exists()
    desk.uninstall()
    assert (desk.path.is_symlink(), (tmp_path / "later.json").exists()) == (True, False)


def test_a_link_in_a_circle_is_refused(desk: Desk) -> None:
    desk.path.symlink_to(desk.path)
    with pytest.raises(Refused, match="cannot be read"):
        desk.install()


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_read_only_file_is_left_alone(desk: Desk, mode: int) -> None:
    desk.path.write_bytes(BEFORE)
    desk.path.chmod(mode)
    with pytest.raises(Refused, match=r"read-only|cannot be read"):
        desk.install()
    desk.path.chmod(0o600)
    assert (desk.path.read_bytes(), desk.names()) == (BEFORE, ["mcp.json"])


def test_a_file_with_two_names_is_left_alone(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    os.link(desk.path, desk.path.parent / "second")
    with pytest.raises(Refused, match="hard link"):
        desk.install()


def test_what_is_no_file_is_left_alone(desk: Desk) -> None:
    os.mkfifo(desk.path)
    with pytest.raises(Refused, match="not a regular file"):
        desk.install()
    with pytest.raises(Refused):
        desk.install(path=desk.path.parent)


def test_a_directory_that_cannot_be_written_to_is_named(desk: Desk) -> None:
    """What was named was a file that nobody knew, and that did not exist."""
    with pytest.raises(Refused, match=r"^/proc/mcp\.json: cannot write to its directory: .*--file$"):
        desk.install(path=Path("/proc/mcp.json"))


def test_a_dry_run_shows_and_writes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.path.write_bytes(BEFORE)
    assert desk.install(is_dry=True).has_effect
    assert (desk.path.read_bytes(), desk.names(), len(desk.seen)) == (BEFORE, ["mcp.json"], 1)
    desk.install(path=tmp_path / "one" / "mcp.json", is_dry=True)
    assert not (tmp_path / "one").exists()
    desk.install()
    installed = desk.path.read_bytes()
    assert desk.uninstall(is_dry=True).after == BEFORE.decode()
    assert desk.path.read_bytes() == installed


def test_the_difference_is_shown_before_the_file_changes(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    at_that_time = []
    change_entry(desk.target(), ENTRY, show=lambda _: at_that_time.append(desk.path.read_bytes()))
    assert at_that_time == [BEFORE]


def test_an_entry_can_be_renewed_and_still_be_taken_out(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    desk.install("other")
    desk.install()
    desk.install("other", entry=OTHER)
    assert desk.servers() == {"x": {}, "other": OTHER, "demo": ENTRY}
    assert list(desk.servers()) == ["x", "other", "demo"]
    desk.uninstall("other")
    desk.uninstall()
    assert desk.path.read_bytes() == BEFORE


def test_what_others_write_meanwhile_stays(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    desk.install()
    changed = desk.path.read_bytes().replace(b'"x": {}', b'"x": {},   "y": 1')
    desk.path.write_bytes(changed)
    assert desk.uninstall().backup == f"{desk.path}.mcpgreen-backup-2"
    assert desk.servers() == {"x": {}, "y": 1}
    assert Path(f"{desk.path}.mcpgreen-backup-2").read_bytes() == changed


def test_an_entry_of_somebody_else_is_not_taken_out(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    with pytest.raises(Refused, match="does not belong to mcpgreen"):
        desk.uninstall("x")
    assert desk.path.read_bytes() == BEFORE


def test_an_entry_that_is_replaced_is_in_the_backup(desk: Desk) -> None:
    before = b'{"mcpServers": {"demo": { "command":"old" }}}'
    desk.path.write_bytes(before)
    backup = desk.install().backup
    assert desk.servers() == {"demo": ENTRY}
    desk.uninstall()
    assert backup and Path(backup).read_bytes() == before


def test_nothing_to_take_out_is_no_mistake(desk: Desk) -> None:
    assert not desk.uninstall().has_effect
    desk.path.write_bytes(BEFORE)
    assert not desk.uninstall().has_effect
    assert desk.names() == ["mcp.json"]


def test_a_change_at_the_last_moment_is_not_overwritten(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)

    def interfere(change: Change) -> None:
        desk.path.write_bytes(b"{}")

    with pytest.raises(Refused, match="meantime"):
        change_entry(desk.target(), ENTRY, show=interfere)
    assert desk.path.read_bytes() == b"{}"
    assert not [name for name in desk.names() if name.endswith(".tmp")]


def test_an_interruption_leaves_nothing_behind(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)

    def interrupt(change: Change) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_entry(desk.target(), ENTRY, show=interrupt)
    assert (desk.path.read_bytes(), desk.names()) == (BEFORE, ["mcp.json"])


def test_backups_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installing, "MAX_BACKUPS", 2)
    for number in range(2):
        desk.path.write_bytes(b'{"a": %d}' % number)
        desk.install()
    desk.path.write_bytes(b"{}")
    with pytest.raises(Refused, match="2 backups"):
        desk.install()


def test_a_backup_is_not_written_over(desk: Desk) -> None:
    Path(f"{desk.path}.mcpgreen-backup").write_bytes(b"mine")
    desk.path.write_bytes(BEFORE)
    assert desk.install().backup == f"{desk.path}.mcpgreen-backup-2"
    assert Path(f"{desk.path}.mcpgreen-backup").read_bytes() == b"mine"
