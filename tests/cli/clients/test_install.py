"""What becomes of a file around its content: links, modes, backups, others who write to it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.clients import client_file
from mcpgreen.cli.clients.client_file import Refused
from mcpgreen.cli.clients.install import Change, Target, install, uninstall
from mcpgreen.cli.clients.records import Records
from mcpgreen.cli.clients.table import BY_WORD, FORMATS

ENTRY = {"command": "/bin/mcpgreen", "args": ["serve"], "env": {"A": "b"}}
OTHER = {**ENTRY, "env": {"A": "c"}}
BEFORE = b'{\n  "mcpServers": {"x": {}}\n}\n'


class Desk:
    """A client's file, and somebody who installs into it."""

    def __init__(self, directory: Path, client: str = "cursor") -> None:
        self.path = directory / "place" / "mcp.json"
        self.path.parent.mkdir()
        self.records = Records({"HOME": str(directory / "home")})
        self.client = BY_WORD[client]
        self.seen: list[Change] = []

    def target(self, name: str = "demo", path: Path | None = None) -> Target:
        return Target(str(path or self.path), FORMATS[self.client.format], self.client.spot(name))

    def install(self, name: str = "demo", *, path: Path | None = None, entry: Any = ENTRY, **more: Any) -> Change:
        return install(self.target(name, path), entry, self.records, show=self.seen.append, **more)

    def uninstall(self, name: str = "demo", *, path: Path | None = None, **more: Any) -> Change:
        return uninstall(self.target(name, path), self.records, show=self.seen.append, **more)

    def servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = json.loads(self.path.read_bytes())["mcpServers"]
        return servers

    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.parent.iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_file_that_we_made_vanishes_with_its_directories(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "mcp.json"
    change = desk.install(path=path)
    assert (change.before, change.backup) == (None, None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    desk.uninstall(path=path)

    assert not (tmp_path / "one").exists()


def test_a_directory_that_others_use_by_then_stays(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "mcp.json"
    desk.install(path=path)
    (tmp_path / "one" / "other").touch()
    desk.uninstall(path=path)
    assert [each.name for each in (tmp_path / "one").iterdir()] == ["other"]


def test_a_file_that_we_made_and_others_added_to_stays(desk: Desk) -> None:
    desk.install()
    desk.path.write_text(json.dumps({**json.loads(desk.path.read_bytes()), "theme": "dark"}), encoding="utf-8")
    desk.uninstall()
    assert json.loads(desk.path.read_bytes()) == {"theme": "dark"}


def test_a_file_that_we_made_and_the_client_wrote_anew_vanishes(desk: Desk) -> None:
    desk.install()
    desk.path.write_text(json.dumps(json.loads(desk.path.read_bytes())), encoding="utf-8")
    desk.uninstall()
    assert not desk.path.exists()


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
    with pytest.raises(Refused, match="no regular file"):
        desk.install()
    with pytest.raises(Refused):
        desk.install(path=desk.path.parent)


def test_a_directory_that_cannot_be_written_to_is_named(desk: Desk) -> None:
    """What was named was a file that nobody knew, and that did not exist."""
    with pytest.raises(Refused, match=r"^/proc/mcp\.json: its directory cannot be written to: .*--file$"):
        desk.install(path=Path("/proc/mcp.json"))


def test_a_refusal_leaves_no_directories(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        desk.install(path=tmp_path / "one" / "two" / "mcp.json", entry={"command": "\udc80"})
    assert not (tmp_path / "one").exists()


def test_a_dry_run_shows_and_writes_nothing(desk: Desk, tmp_path: Path) -> None:
    desk.path.write_bytes(BEFORE)
    assert desk.install(is_dry=True).is_one
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
    install(desk.target(), ENTRY, desk.records, show=lambda _: at_that_time.append(desk.path.read_bytes()))
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
    assert (desk.path.read_bytes(), desk.names()) == (BEFORE, ["mcp.json"])


def test_a_record_does_not_grow_with_each_renewal(desk: Desk, tmp_path: Path) -> None:
    """It named its backup once more each time, until it was too long to be read."""
    desk.path.write_bytes(BEFORE)
    desk.install()
    (record,) = (tmp_path / "home").rglob("*.json")
    size = record.stat().st_size
    for entry in (OTHER, ENTRY, OTHER, ENTRY):
        desk.install(entry=entry)
    assert record.stat().st_size == size


def test_what_others_write_meanwhile_stays(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    desk.install()
    changed = desk.path.read_bytes().replace(b'"x": {}', b'"x": {},   "y": 1')
    desk.path.write_bytes(changed)
    assert desk.uninstall().backup == f"{desk.path}.mcpgreen-backup-2"
    assert desk.servers() == {"x": {}, "y": 1}
    assert Path(f"{desk.path}.mcpgreen-backup-2").read_bytes() == changed


def test_an_entry_that_stood_there_comes_back_even_then(desk: Desk) -> None:
    desk.path.write_bytes(b'{"mcpServers": {"demo": { "command":"old" }}}')
    desk.install()
    desk.path.write_bytes(desk.path.read_bytes().replace(b'{"mcpServers"', b'{"a": 1, "mcpServers"'))
    desk.uninstall()
    assert desk.path.read_bytes() == b'{"a": 1, "mcpServers": {"demo": { "command":"old" }}}'


def test_an_entry_that_was_renewed_in_a_changed_file_goes_altogether(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    desk.install()
    desk.path.write_bytes(desk.path.read_bytes() + b"\n")
    desk.install(entry=OTHER)
    desk.uninstall()
    assert desk.servers() == {"x": {}}


def test_a_root_that_we_made_goes_with_the_last_entry(desk: Desk) -> None:
    desk.path.write_bytes(b'{\n  "theme": "dark"\n}\n')
    desk.install()
    desk.path.write_bytes(desk.path.read_bytes().replace(b"dark", b"light"))
    desk.uninstall()
    assert desk.path.read_bytes() == b'{\n  "theme": "light"\n}\n'


def test_an_entry_of_somebody_else_is_not_taken_out(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    with pytest.raises(Refused, match="none of mcpgreen"):
        desk.uninstall("x")
    assert desk.path.read_bytes() == BEFORE


def test_nothing_to_take_out_is_no_mistake(desk: Desk) -> None:
    assert not desk.uninstall().is_one
    desk.path.write_bytes(BEFORE)
    assert not desk.uninstall().is_one
    assert desk.names() == ["mcp.json"]


def test_without_its_backup_a_file_loses_the_entry_only(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)
    backup = desk.install().backup
    os.unlink(str(backup))
    desk.uninstall()
    assert desk.servers() == {"x": {}}


def test_a_record_that_somebody_forged_is_not_used(desk: Desk, tmp_path: Path) -> None:
    desk.path.write_bytes(BEFORE)
    desk.install()
    (record,) = (tmp_path / "home").rglob("*.json")
    record.write_text('{"path": 1, "entries": 5}', encoding="utf-8")
    desk.uninstall()
    assert desk.servers() == {"x": {}}


def test_where_nothing_can_be_noted_an_entry_goes_in_all_the_same(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    desk.path.write_bytes(BEFORE)
    assert not desk.install().is_recorded
    desk.uninstall()
    assert desk.servers() == {"x": {}}


def test_a_change_at_the_last_moment_is_not_overwritten(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)

    def interfere(change: Change) -> None:
        desk.path.write_bytes(b"{}")

    with pytest.raises(Refused, match="meanwhile"):
        install(desk.target(), ENTRY, desk.records, show=interfere)
    assert desk.path.read_bytes() == b"{}"
    assert not [name for name in desk.names() if name.endswith(".tmp")]


def test_an_interruption_leaves_nothing_behind(desk: Desk) -> None:
    desk.path.write_bytes(BEFORE)

    def interrupt(change: Change) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(desk.target(), ENTRY, desk.records, show=interrupt)
    assert (desk.path.read_bytes(), desk.names()) == (BEFORE, ["mcp.json"])


def test_who_holds_the_lock_for_too_long_is_not_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_file, "LOCK_SECS", 0.05)
    desk.path.write_bytes(BEFORE)
    with client_file.ClientFile(str(desk.path)).locked(), pytest.raises(Refused, match="another program"):
        desk.install()


def test_backups_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_file, "MAX_BACKUPS", 2)
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
    desk.uninstall()
    assert desk.names() == ["mcp.json", "mcp.json.mcpgreen-backup"]
