"""Nobody but us can use, guess or replace the files that the server makes."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import gevent
import pytest

from mcpgreen.files.regular_files import replacing
from mcpgreen.running.scripts import replies
from mcpgreen.running.scripts import scratch as scratch_files
from mcpgreen.running.scripts.scratch import PrivateDirectory, StateDir, Storage
from tests.support.client import Speak
from tests.support.processes import command_of
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually, is_alive
from tests.support.wire import Start, Wire, text_of

WHERE = 'printf %s "$MCPBASH_STATE_DIR"'


def state_dir_of(wire: Wire) -> Path:
    return Path(text_of(wire.call_tool("where")))


def commands_on_the_machine() -> str:
    return "\n".join(command_of(entry) for entry in os.listdir("/proc") if entry.isdigit())


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    directory = tmp_path / "scratch"
    directory.mkdir()
    return directory


class Guardian:
    """Stands in for the real one, and removes trees at once."""

    def __init__(self) -> None:
        self.protected: list[str] = []

    def protect(self, what: str, directory: str) -> None:
        self.protected.append(directory)

    def clear_trees(self) -> None:
        for tree in Path(self.protected[-1]).glob("removed.*"):
            shutil.rmtree(tree)


def new_state(parent: Path, guardian: Guardian | None = None) -> StateDir:
    storage = Storage(on_news=lambda level, text: None)
    return StateDir(str(parent), is_kept=False, storage=storage, guardian=guardian or Guardian())


def test_the_state_directory_is_ours_alone_and_on_no_command_line(
    project: ProjectBuilder, start: Start, scratch: Path
) -> None:
    project.tool("where", WHERE)
    wire = start(tmp_root=scratch).greeted()
    directory = state_dir_of(wire)

    status = directory.lstat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o700, os.geteuid())
    assert len(directory.name.rpartition(".")[2]) >= 32
    assert directory.name not in commands_on_the_machine()


def test_no_two_directories_have_the_same_name(scratch: Path) -> None:
    guardian = Guardian()
    state = new_state(scratch, guardian)
    for _ in range(3):
        shutil.rmtree(state.require().path)

    assert len(set(guardian.protected)) == 3
    assert state.remove()


@pytest.mark.parametrize("kind", ["directory", "link", "file", "nothing"])
def test_what_has_taken_the_place_of_the_state_directory_is_left_alone(
    project: ProjectBuilder, start: Start, scratch: Path, kind: str
) -> None:
    """Somebody waits for a cleaner to remove the directory, and then makes one with links of his choice in it."""
    project.tool("where", WHERE)
    project.tool("size", 'wc -c <"$MCP_TOOL_ARGS_FILE"')
    victim = scratch.parent / "victim"
    victim.mkdir()
    (victim / "precious").write_text("as it was")
    wire = start(tmp_root=scratch, env_payload_threshold=0).greeted()
    old = state_dir_of(wire)
    shutil.rmtree(old)
    if kind == "directory":
        old.mkdir(0o700)
        for number in range(1, 9):
            (old / f"call.{number}.mcp_tool_args.json").symlink_to(victim / "precious")
    elif kind == "link":
        old.symlink_to(victim)
    elif kind == "file":
        old.write_text("mine")
    for _ in range(3):
        assert int(text_of(wire.call_tool("size", {"x": "y"}))) > 0
    new = state_dir_of(wire)

    assert new.name != old.name
    assert wire.stop() == 0
    assert (victim / "precious").read_text() == "as it was"
    assert os.listdir(victim) == ["precious"]
    assert os.path.lexists(old) == (kind != "nothing")
    assert not new.exists()


def test_the_guardian_removes_the_directory_that_was_made_last(
    project: ProjectBuilder, start: Start, scratch: Path
) -> None:
    project.tool("where", WHERE)
    wire = start(tmp_root=scratch).greeted()
    old = state_dir_of(wire)
    shutil.rmtree(old)
    old.mkdir()
    assert state_dir_of(wire) != old
    wire.kill()

    eventually(lambda: os.listdir(scratch) == [old.name])


def test_a_directory_that_is_cleaned_away_during_a_call_costs_that_call_its_files_only(
    project: ProjectBuilder, start: Start, scratch: Path
) -> None:
    project.tool("where", WHERE)
    project.tool("hold", 'touch up; until [ -e go ]; do sleep 0.01; done; echo x >"$MCP_TOOL_ERROR_FILE"; echo held')
    wire = start(tmp_root=scratch).greeted()
    old = state_dir_of(wire)
    held = wire.start_request("tools/call", {"name": "hold"})
    eventually((project.root / "up").exists)
    shutil.rmtree(old)
    new = state_dir_of(wire)
    wire.notify("notifications/cancelled", {"requestId": "none"})
    project.write("go", "")

    assert text_of(wire.response(held)["result"]) == "held\n"
    assert os.listdir(scratch) == [new.name]
    assert wire.stop() == 0
    assert os.listdir(scratch) == []


def test_a_state_directory_that_was_moved_is_emptied_while_others_go_on(scratch: Path) -> None:
    """A script that filled it before it moved it held everything for half a second, and again with each call."""
    state = new_state(scratch)
    path = Path(state.require().path)
    for number in range(500):
        (path / f"filler.{number}").touch()
    moved = path.rename(scratch / "moved")
    files = state.new_call(2)

    assert len(list(moved.iterdir())) == 500
    assert files.directory.path != str(path)
    eventually(lambda: (gevent.sleep(0.001), list(moved.iterdir()))[1] == [])
    assert state.remove()


def test_a_state_directory_that_was_moved_is_emptied_by_a_server_that_ends(scratch: Path) -> None:
    state = new_state(scratch)
    (Path(state.require().path) / "filler").touch()
    moved = Path(state.require().path).rename(scratch / "moved")
    state.require()

    assert state.remove()
    assert list(moved.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "directory"])
def test_long_arguments_go_into_a_file_of_our_own(scratch: Path, kind: str) -> None:
    victim = scratch.parent / "victim"
    victim.write_text("as it was")
    state = new_state(scratch)
    place = Path(state.require().path) / "call.1.arguments"
    if kind == "link":
        place.symlink_to(victim)
    elif kind == "hard link":
        place.hardlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        (place / "below").mkdir(parents=True)
    path = state.new_call(1).spill(b"arguments", b"said")

    assert Path(os.fsdecode(path)).read_bytes() == b"said"
    assert victim.read_text() == "as it was"
    assert state.remove()


@pytest.mark.parametrize("name", ["error.json", "resources"])
def test_a_report_that_is_a_link_is_not_read(scratch: Path, name: str) -> None:
    (scratch / "secret").write_text("secret")
    state = new_state(scratch)
    files = state.new_call(1)
    Path(os.fsdecode(files.place) + name).symlink_to(scratch / "secret")

    assert files.take_reports() == (b"", b"")
    assert state.remove()
    assert os.listdir(scratch) == ["secret"]


def test_a_cancel_file_is_no_way_to_another_file(scratch: Path) -> None:
    state = new_state(scratch)
    files = state.new_call(1)
    Path(os.fsdecode(files.place) + "cancelled").symlink_to(scratch / "made")
    files.mark_cancelled()

    assert not (scratch / "made").exists()
    assert state.remove()


def test_what_scripts_leave_below_the_directory_goes_with_it(scratch: Path) -> None:
    outside = scratch / "outside"
    outside.mkdir()
    (outside / "kept").write_text("")
    state = new_state(scratch)
    files = state.new_call(1)
    tree = Path(os.fsdecode(files.place) + "tree")
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_text("")
    (tree / "out").symlink_to(outside)
    files.remove()

    assert os.listdir(state.require().path) == []
    assert state.remove()
    assert os.listdir(scratch) == ["outside"]
    assert os.listdir(outside) == ["kept"]


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_directory_that_others_may_use_is_not_taken(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """As if somebody had put it there between the making and the opening."""
    made = os.mkdir
    monkeypatch.setattr(os, "mkdir", lambda path, _: (made(path, mode), os.chmod(path, mode)))

    with pytest.raises(OSError, match="other users can write to it, or have put it there") as caught:
        PrivateDirectory(str(scratch / "new"), Guardian())
    assert caught.value.errno == errno.EPERM


@pytest.mark.parametrize("name", ["probe", "draft"])
def test_a_fifo_at_a_guessed_name_does_not_hold_up_the_server(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The disk is probed, and the registry written, under names that nobody knows: the old ones are of no use."""
    for known in (f".mcpgreen.probe.{os.getpid()}", f".tools.json.{os.getpid()}"):
        os.mkfifo(scratch / known)
    if name == "probe":
        assert scratch_files._has_room(str(scratch))
    else:
        with replacing(str(scratch / "tools.json")) as file:
            file.write(b"{}")
        assert (scratch / "tools.json").read_bytes() == b"{}"


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_even_the_right_name_leads_to_nothing_of_others(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("mcpgreen.running.scripts.scratch.unguessable", lambda: "guessed")
    monkeypatch.setattr("mcpgreen.files.regular_files.unguessable", lambda: "guessed")
    for known in (".mcpgreen.probe.guessed", ".mcpgreen-guessed"):
        if kind == "fifo":
            os.mkfifo(scratch / known)
        else:
            (scratch / known).symlink_to(scratch / "victim")

    assert scratch_files._has_room(str(scratch))  # it is no sign of a full disk
    with pytest.raises(FileExistsError), replacing(str(scratch / "tools.json")):
        pass
    assert not (scratch / "victim").exists()


def test_an_answer_is_not_put_into_a_directory_of_others(scratch: Path, capfd: pytest.CaptureFixture[str]) -> None:
    foreign = scratch / "foreign"
    foreign.mkdir()
    foreign.chmod(0o777)
    replies.deliver(str(foreign / "reply.1"), b"secret")

    assert os.listdir(foreign) == []
    assert "did not read its answer" in capfd.readouterr().err


def test_an_answer_follows_no_link(scratch: Path) -> None:
    private = scratch / "private"
    private.mkdir(0o700)
    (private / "reply.1").symlink_to(scratch / "elsewhere")
    replies.deliver(str(private / "reply.1"), b"answer")

    assert not (scratch / "elsewhere").exists()
    assert (private / "reply.1").read_bytes() == b"answer\n"


def test_a_provider_and_a_completion_are_told_the_directory_that_exists(project: ProjectBuilder, speak: Speak) -> None:
    project.provider("here.sh", '[ -d "$MCPBASH_STATE_DIR" ] && printf %s "$MCPBASH_STATE_DIR"')
    project.prompt("ask.txt", "text", name="ask", arguments=[{"name": "a"}])
    project.program("prompts/ask.completion.sh", 'printf \'["%s"]\' "$MCPBASH_STATE_DIR"')
    project.tool("where", WHERE)
    client = speak()
    read = client.result("resources/read", {"uri": "here://x"})["contents"][0]["text"]
    ref = {"type": "ref/prompt", "name": "ask"}
    completed = client.result("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})

    assert read == text_of(client.call_tool("where"))
    assert completed["completion"]["values"] in ([read], [])
    shutil.rmtree(read)
    again = client.result("resources/read", {"uri": "here://x"})["contents"][0]["text"]
    assert again != read


def test_nothing_is_left_when_server_and_directory_go_at_once(
    project: ProjectBuilder, start: Start, scratch: Path
) -> None:
    project.tool(
        "deep", 'p=$MCP_TOOL_ERROR_FILE.d; for n in $(seq 300); do mkdir "$p" && cd "$p"; p=d; done; echo $PPID'
    )
    wire = start(tmp_root=scratch).greeted()
    assert is_alive(text_of(wire.call_tool("deep")))
    assert wire.stop() == 0

    eventually(lambda: os.listdir(scratch) == [])
