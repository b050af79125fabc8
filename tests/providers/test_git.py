"""The git provider, as a program against real repositories behind a real site."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mcpgreen.providers.exits import REFUSED, ProviderFailure
from mcpgreen.providers.git import read_uri
from tests.providers.conftest import Desk, Ended
from tests.providers.repositories import BIG_BYTES, git
from tests.providers.site import Site
from tests.support.prerequisites import require_program
from tests.support.waiting import eventually

LARGE_BYTES = 66 << 20
QUICKLY = ("-c", "core.compression=1", "-c", "core.bigFileThreshold=1m")

Fetch = Callable[..., Ended]
OPEN = {"enable_git_provider": "true", "git_allow_all": "true", "net_allow_addresses": "127.0.0.1"}


@pytest.fixture
def fetch(desk: Desk, git_site: Site) -> Iterator[Fetch]:
    """Fetch what stands behind # from a repository of the site; nothing may be left behind."""

    def fetch_file(
        fragment: str, *, repository: str = "git/plain.git", host: str = "127.0.0.1", **options: Any
    ) -> Ended:
        uri = f"git+https://{host}:{git_site.port}/{repository}#{fragment}"
        return desk.run("git", uri, **{**OPEN, **options})

    yield fetch_file
    assert desk.left_behind() == []


@pytest.mark.parametrize(
    ("fragment", "content"),
    [
        ("README.md", b"second\n"),
        ("HEAD:README.md", b"second\n"),
        ("main:README.md", b"second\n"),
        ("feature/x:README.md", b"feature\n"),
        ("v1:README.md", b"first\n"),
        ("refs/tags/v1:README.md", b"first\n"),
        ("main:run.sh", b"#!/bin/sh\n"),
        (f"main:docs/{quote('Größe & more.txt')}", b"spaces\n"),
    ],
)
def test_a_file_is_read_at_a_branch_or_a_tag(fetch: Fetch, fragment: str, content: bytes) -> None:
    assert fetch(fragment) == (0, content, "")


@pytest.mark.parametrize("repository", ["git/plain.git", "git/sparing.git"])
@pytest.mark.parametrize("length", [7, 40])
def test_a_file_is_read_at_a_commit_whole_or_shortened(
    fetch: Fetch, repositories: Path, repository: str, length: int
) -> None:
    commit = git(repositories / "plain.git", "rev-parse", "v1")

    assert fetch(f"{commit[:length]}:README.md", repository=repository) == (0, b"first\n", "")


@pytest.mark.parametrize(
    ("fragment", "reason"),
    [
        ("main:nothing.txt", "no file nothing.txt at main"),
        ("main:README.md/x", "no file README.md/x"),
        ("main:docs", "a directory"),
        ("main:link", "a symbolic link"),
        ("main:module", "a submodule"),
        ("gone:README.md", "no branch, tag or commit gone"),
        ("v1:run.sh", "no file run.sh at v1"),
        ("1234567:README.md", "no branch, tag or commit 1234567"),
        (f"{'12' * 20}:README.md", "no branch, tag or commit 1212"),
    ],
)
def test_what_is_not_there_is_named(fetch: Fetch, fragment: str, reason: str) -> None:
    ended = fetch(fragment)

    assert (ended.status, ended.content) == (3, b"")
    assert reason in ended.reason


SPARING = {"repository": "git/sparing.git"}  # a server that can leave out files
LIMIT = {"git_max_kb": 200}
LATE = {"repository": "silent/x.git", "git_timeout_secs": 0.5}


@pytest.mark.parametrize(
    ("fragment", "options", "status", "size_bytes", "reason"),
    [
        ("README.md", {"repository": "git/gone.git"}, 3, 0, ""),
        ("README.md", {"repository": "private/x.git"}, 5, 0, "The repository asks for a login.\n"),
        ("main:big.bin", {**SPARING, "git_max_kb": BIG_BYTES // 1024 - 1}, 6, 0, "KiB"),
        ("main:big.bin", {"git_max_kb": 2 * BIG_BYTES // 1024}, 0, BIG_BYTES, ""),
        ("main:README.md", {"repository": "git/plain.git", **LIMIT}, 6, 0, "200 KiB"),
        ("main:README.md", {**SPARING, **LIMIT}, 0, len("second\n"), ""),
        ("README.md", LATE, 5, 0, "Timed out after 0.5 seconds.\n"),
        ("README.md", {"host": "pinned.test"}, 0, len("second\n"), ""),  # a name that only the guard can resolve
    ],
)
def test_each_fetch_has_its_status_and_reason(
    fetch: Fetch, fragment: str, options: dict[str, Any], status: int, size_bytes: int, reason: str
) -> None:
    ended = fetch(fragment, **options)

    assert (ended.status, len(ended.content)) == (status, size_bytes)
    assert reason in ended.reason


def test_a_redirect_is_not_followed(fetch: Fetch, git_site: Site) -> None:
    before = len(git_site.paths)
    ended = fetch("README.md", repository="moved/x.git")

    assert ended.status == 5
    assert "redirects" in ended.reason
    assert {path.split("/")[1] for path in git_site.paths[before:]} == {"moved"}


def test_a_site_without_repositories_is_a_failure_without_paths_of_this_machine(fetch: Fetch, desk: Desk) -> None:
    ended = fetch("README.md", repository="ok/x.git")

    assert ended.status in (3, 5)
    assert str(desk.temporary) not in ended.reason


def test_an_untrusted_certificate_is_refused(fetch: Fetch, desk: Desk) -> None:
    (desk.temporary.parent / "none.pem").touch()
    ended = fetch("README.md", env={"SSL_CERT_FILE": str(desk.temporary.parent / "none.pem")})

    assert ended.status == 5
    assert str(desk.temporary.parent) not in ended.reason


@pytest.mark.parametrize(
    ("host", "settings", "reason"),
    [
        ("127.0.0.1", {"enable_git_provider": "false"}, "MCPGREEN_ENABLE_GIT_PROVIDER"),
        ("127.0.0.1", {"git_allow_all": "false"}, "MCPGREEN_GIT_ALLOW_HOSTS"),
        ("127.0.0.1", {"git_deny_hosts": "127.0.0.1"}, "MCPGREEN_GIT_DENY_HOSTS"),
        ("127.0.0.1", {"net_allow_addresses": ""}, "loopback"),
        ("localhost", {"net_allow_addresses": ""}, "loopback"),
        ("mixed.test", {}, "private"),
        ("0177.0.0.1", {}, "0177"),
        ("me:secret@127.0.0.1", {}, "user"),
    ],
)
def test_no_connection_is_made_when_the_guard_refuses(
    fetch: Fetch, git_site: Site, host: str, settings: dict[str, str], reason: str
) -> None:
    before = git_site.connections
    ended = fetch("README.md", host=host, **settings)

    assert (ended.status, ended.content) == (4, b"")
    assert reason in ended.reason
    assert git_site.connections == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_in_the_middle_of_a_fetch_leaves_nothing_behind(desk: Desk, git_site: Site, number: int) -> None:
    before = len(git_site.paths)
    with desk.start("git", f"git+https://127.0.0.1:{git_site.port}/silent/x.git#README.md", **OPEN) as child:
        eventually(lambda: len(git_site.paths) > before)
        assert len(desk.left_behind()) > 2  # the directory, the provider, and git at work
        child.send_signal(number)

        assert child.communicate(timeout=120) == (b"", b"")
    assert child.returncode == 128 + number
    eventually(lambda: desk.left_behind() == [])


def test_without_git_the_remedy_is_told(fetch: Fetch, tmp_path: Path) -> None:
    ended = fetch("README.md", env={"PATH": str(tmp_path)})

    assert ended.status == 4
    assert "git, which is not installed" in ended.reason


def test_a_git_that_cannot_be_told_the_address_is_not_used(fetch: Fetch, tmp_path: Path) -> None:
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.36.9\n", encoding="utf-8")
    old.chmod(0o755)
    ended = fetch("README.md", env={"PATH": str(tmp_path)})

    assert ended.status == 4
    assert "2.37" in ended.reason


def test_the_configuration_of_the_user_has_no_say(fetch: Fetch, tmp_path: Path, git_site: Site) -> None:
    away = f"https://127.0.0.1:{git_site.port}/git/gone"
    (tmp_path / ".gitconfig").write_text(f'[url "{away}"]\n\tinsteadOf = https://\n', encoding="utf-8")
    variables = {
        "HOME": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{away}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://",
        "https_proxy": "http://127.0.0.1:1",
    }

    assert fetch("README.md", env=variables) == (0, b"second\n", "")


def test_gits_own_protocol_is_spoken_as_well(desk: Desk, repositories: Path, daemon: int) -> None:
    ended = desk.run("git", f"git://127.0.0.1:{daemon}/plain.git#v1:README.md", **OPEN)
    named = desk.run("git", f"git://pinned.test:{daemon}/plain.git#README.md", **OPEN)

    assert ended == (0, b"first\n", "")
    assert named == (0, b"second\n", "")


@pytest.fixture
def daemon(repositories: Path) -> Iterator[int]:
    """The port of a git daemon."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [require_program("git"), "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all", "--reuseaddr"]
    env = {
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    with subprocess.Popen(
        [*command, f"--base-path={repositories}", str(repositories)],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as serving:
        eventually(lambda: _listens(port))
        yield port
        os.killpg(serving.pid, signal.SIGTERM)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(
    ("uri", "ref", "path"),
    [
        ("git+https://h.example/a/b.git#main:x/y.md", "main", "x/y.md"),
        ("git+https://h.example/a/b#x", "HEAD", "x"),
        ("git+https://h.example/a/b#HEAD:x:y", "HEAD", "x:y"),
        ("git+https://h.example/a/b#feature%2Fx:a%20b", "feature/x", "a b"),
        ("git://h.example/a#v1:-x", "v1", "-x"),
    ],
)
def test_a_uri_names_repository_commit_and_file(uri: str, ref: str, path: str) -> None:
    assert read_uri(uri)[1:] == (ref, path)


@pytest.mark.parametrize(
    "uri",
    [
        "https://h.example/a#x",
        "git+ssh://h.example/a#x",
        "git+http://h.example/a#x",
        "ssh://h.example/a#x",
        "file:///a#x",
        "git+https://h.example/#x",
        "git+https://h.example#x",
        "git+https://h.example/a",
        "git+https://h.example/a#",
        "git+https://h.example/a#main:",
        "git+https://h.example/a#:x",
        "git+https://h.example/a?b#x",
        "git+https://user@h.example/a#x",
        "git+https://h.example/a#../x",
        "git+https://h.example/a#main:a/../b",
        "git+https://h.example/a#main:/etc/passwd",
        "git+https://h.example/a#main:a//b",
        "git+https://h.example/a#main:./a",
        "git+https://h.example/a#main:a/",
        "git+https://h.example/a#main:a%2F..%2Fb",
        "git+https://h.example/a#main:a%00b",
        "git+https://h.example/a#--upload-pack=x:y",
        "git+https://h.example/a#+main:y",
        "git+https://h.example/a#main%0A:y",
        "git+https://h.example/a#main~1:y",
        "git+https://h.example/a#a..b:y",
        "git+https://h.example/a#ma*in:y",
        "git+https://h.example/a#@%7B1%7D:y",
    ],
)
def test_a_uri_that_makes_no_sense_is_refused(uri: str) -> None:
    with pytest.raises(ProviderFailure) as caught:
        read_uri(uri)

    assert caught.value.status == REFUSED
    assert caught.value.text.endswith(".")


def test_a_small_pack_that_needs_much_memory_is_too_large(fetch: Fetch, repositories: Path) -> None:
    """Two megabytes of a repository cost 480 MB of memory."""
    heavy = repositories / "heavy.git"
    git(repositories, "clone", "--quiet", "--bare", "work", "heavy.git")
    tree = git(heavy, "rev-parse", "HEAD^{tree}")
    head = f"tree {tree}\nauthor x <x@y> 0 +0000\ncommitter x <x@y> 0 +0000\n\n"
    (heavy / "commit").write_bytes(head.encode() + b"x" * LARGE_BYTES)
    commit = git(heavy, *QUICKLY, "hash-object", "-t", "commit", "-w", "commit")
    git(heavy, "update-ref", "refs/heads/main", commit)
    ended = fetch("main:README.md", repository="git/heavy.git", MEMORY_MB=64)

    assert (ended.status, ended.content) == (6, b"")
    assert ended.reason == "Fetching this takes more than 64 MB of memory.\n"
