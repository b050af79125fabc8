"""Whatever address a client tries, nothing outside the allowed directories is read, and none of it is in any output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import Speak
from tests.support.project import ProjectBuilder
from tests.support.wire import LATEST_HANDSHAKE, MODERN

SECRET = "c0ffee-the-secret-outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret.txt").write_text(SECRET)
    return directory


@pytest.fixture
def traps(project: ProjectBuilder, outside: Path) -> Path:
    """A project with links that lead out, and with a secret of its own in server.d."""
    project.resource("fine.txt", "fine")
    project.write("server.d/env", f"MCP_NOTHING={SECRET}\n")
    resources = project.root / "resources"
    os.symlink(outside / "secret.txt", resources / "link.txt")
    os.symlink(outside, resources / "dir")
    os.symlink("../../outside/secret.txt", resources / "relative.txt")
    os.symlink("../server.d/env", resources / "settings.txt")
    os.symlink("link.txt", resources / "chain.txt")
    os.symlink("loop", resources / "loop")
    os.symlink("/proc/self/environ", resources / "environ")
    return resources


def addresses(project: ProjectBuilder, outside: Path) -> Iterator[str]:
    root, out = project.root.as_uri(), outside.as_uri()
    resources, secret = f"{root}/resources", f"{out}/secret.txt"
    path = secret.removeprefix("file://")
    yield from (
        secret,
        f"file:{path}",
        f"FILE://{path}",
        f"file:///{path}",
        f"file:////{path}",
        f"file://localhost{path}",
    )
    yield from (f"file://host{path}", f"file://127.0.0.1{path}", f"file://user@{path}", f"file://.{path}")
    for up in ("..", "%2e%2e", "%2E.", ".%2e", "..%2f", "%2e%2e%2f", "..%5c", "..\\", "..;", "....//"):
        yield f"{resources}/{up}/{up}/outside/secret.txt"
        yield f"file://./{up}/outside/secret.txt"
        yield f"file://./resources/{up}/{up}/outside/secret.txt"
    yield f"{resources}%2f..%2f..%2foutside%2fsecret.txt"
    yield from (f"file://./{path}", f"file://.{path}", "file://..", "file://../outside/secret.txt", "file:secret.txt")
    for name in ("link.txt", "dir/secret.txt", "relative.txt", "settings.txt", "chain.txt", "loop", "environ"):
        yield f"{resources}/{name}"
        yield f"file://./resources/{name}"
    yield from (f"file:///C:{path}", f"file://C:{path}", f"file:///c|{path}", f"file:c:{path}", f"file:///c%3A{path}")
    yield from (f"{resources}/fine.txt%00{path}", f"{resources}/fine.txt\0", f"{secret}%00", f"{secret}%00.txt")
    yield from (f"{secret}?", f"{secret}#", f"{secret}?x", f"{secret}/", f"{secret}/.", f"{secret}%0a", f"{secret} ")
    yield from (f"{root}/server.d/env", "file://./server.d/env", "file://./server.d/./env", "file://./server.d%2fenv")
    yield from (f"{root}/./server.d//env", f"{resources}/../server.d/env", "file://./SERVER.D/env", "file://./server.d")
    yield from ("file:///proc/self/environ", f"file:///proc/self/root{path}", "file:///proc/self/cwd/server.d/env")
    yield from ("file:///dev/stdin", "file:///dev/fd/0", "file:///proc/self/mem", "file:///proc/self/fd/3", "file:///")
    yield from (path, f"//{path}", f"file\\{path}", "file://", "file:", f"url:{secret}", f"file+{secret}")


@pytest.mark.requirement("P-121")
@pytest.mark.parametrize(
    ("revision", "is_our_script"),
    [(LATEST_HANDSHAKE, False), (MODERN, False), (MODERN, True)],
    ids=["in the server", "in the server, stateless", "as a script"],
)
def test_no_way_out_is_found(
    project: ProjectBuilder, speak: Speak, outside: Path, traps: Path, revision: str, is_our_script: bool
) -> None:
    tried = list(dict.fromkeys(addresses(project, outside)))
    if is_our_script:
        project.provider("file.sh", 'exec "$MCPBASH_HOME/providers/file.sh" "$@"')
        tried = tried[::6] + [uri for uri in tried if "server.d" in uri or "resources/" in uri][::2]  # a process each
    client = speak(revision)
    requests = {client.start("resources/read", {"uri": uri}): uri for uri in tried}
    requests |= {client.start("resources/read", {"name": name}): name for name in ("link", "../outside/secret.txt")}
    got_in = [uri for id, uri in requests.items() if "error" not in client.wire.response(id)]

    assert got_in == []
    assert [each["name"] for each in client.result("resources/list")["resources"]] == ["fine"]
    client.wire.stop()
    output = b"".join(client.wire.raw_lines).decode() + client.wire.stderr
    assert SECRET not in output
    assert "Traceback" not in output


@pytest.mark.requirement("P-121")
def test_outside_what_exists_and_what_does_not_look_the_same(
    project: ProjectBuilder, speak: Speak, outside: Path
) -> None:
    client = speak()
    (outside / "secret.txt").chmod(0)
    uris = [f"{outside.as_uri()}/{name}" for name in ("secret.txt", "missing.txt", "secret.txt/x", "no/such/place", "")]
    answers = [client.error("resources/read", {"uri": uri}) for uri in [*uris, "file://./server.d/env", "file:///etc"]]

    assert answers == [{"code": -32603, "message": "Resource outside allowed roots"}] * len(answers)


@pytest.mark.requirement("P-121")
def test_a_file_that_a_description_names_is_confined_as_well(
    project: ProjectBuilder, speak: Speak, outside: Path
) -> None:
    project.described("planted", uri=(outside / "secret.txt").as_uri())
    project.described("up", uri="file://./resources/../../outside/secret.txt")
    client = speak()

    for name in ("planted", "up"):
        assert client.error("resources/read", {"name": name})["code"] in (-32602, -32603)
    assert SECRET not in b"".join(client.wire.raw_lines).decode()
