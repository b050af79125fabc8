"""What a client may name as its roots, by the setting `client_roots`; the kernel's own files are never served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpgreen.files.confined import holds
from tests.features.test_roots import HAS_ROOTS, answered, naming, requests_in
from tests.support import ways
from tests.support.client import Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import MODERN, Start, text_of

way, project = ways.way, ways.project

TOKEN: Json = {"mcpbash/remoteToken": "correct-horse-battery-staple-4711"}
ENVIRON = "file:///proc/self/environ"


@pytest.fixture(autouse=True)
def show(project: ProjectBuilder) -> None:
    project.tool("show", """printf '%s' "$MCP_ROOTS_PATHS\"""")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory for the operator to name, with another in it."""
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "inner" / "file.txt").write_text("inner", encoding="utf-8")
    return tmp_path / "data"


def shown(client: Client) -> list[str]:
    return text_of(client.call_tool("show")).split("\n")


@pytest.mark.requirement("G-client-roots")
@pytest.mark.parametrize("options", [{}, {"client_roots": "within"}], ids=["setting", "file"])
def test_configured_roots_bound_those_of_a_client(
    project: ProjectBuilder, speak: Speak, data: Path, tmp_path: Path, options: Json
) -> None:
    """A client that named file:/// read everything, whatever the operator had configured."""
    if options:
        project.write("config/roots.json", f'{{"roots": [{{"path": "{data}"}}]}}')
    else:
        options = {"roots": str(data)}
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    client = answered(speak, "file:///", tmp_path, data / "inner", **options)

    assert shown(client) == [str(data / "inner")]
    assert client.result("resources/read", {"uri": (data / "inner" / "file.txt").as_uri()})["contents"]
    assert "outside" in client.error("resources/read", {"uri": secret.as_uri()})["message"]
    assert eventually(lambda: "MCPGREEN_CLIENT_ROOTS=trust" in client.wire.stderr)


@pytest.mark.requirement("G-client-roots")
def test_what_the_project_names_is_for_clients_that_name_nothing(
    project: ProjectBuilder, speak: Speak, data: Path
) -> None:
    project.write("config/roots.json", f'{{"roots": [{{"path": "{project.root}"}}]}}')

    assert shown(answered(speak, data)) == [str(data)]


@pytest.mark.requirement("G-client-roots")
def test_where_nothing_is_inside_the_configured_roots_stay(speak: Speak, data: Path, tmp_path: Path) -> None:
    link = tmp_path / "data-link"
    link.symlink_to("/")
    client = answered(speak, "file:///", link, f"file://{data}-link/", roots=data)

    assert shown(client) == [str(data)]


@pytest.mark.requirement("G-client-roots")
def test_a_link_out_of_the_configured_roots_is_no_root(speak: Speak, data: Path) -> None:
    (data / "out").symlink_to("/")
    client = answered(speak, data / "out", data / "inner", roots=data)

    assert shown(client) == [str(data / "inner")]


@pytest.mark.requirement("G-client-roots")
def test_with_a_remote_token_the_project_bounds_them(project: ProjectBuilder, start: Start) -> None:
    (project.root / "inner").mkdir()
    wire = start(remote_token=TOKEN["mcpbash/remoteToken"])
    hello = {"protocolVersion": "2025-11-25", "capabilities": HAS_ROOTS, "clientInfo": {"name": "c", "version": "1"}}
    wire.result("initialize", {**hello, "_meta": dict(TOKEN)})
    wire.notify("notifications/initialized", {"_meta": dict(TOKEN)})
    asked = wire.notice("roots/list")
    wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": naming("file:///", project.root / "inner")})

    assert text_of(wire.call_tool("show", _meta=dict(TOKEN))) == str(project.root / "inner")


@pytest.mark.requirement("G-client-roots")
@pytest.mark.parametrize("is_configured", [True, False])
def test_who_trusts_clients_says_so(speak: Speak, data: Path, tmp_path: Path, is_configured: bool) -> None:
    """Without roots of the operator it is the default: the client is whoever started the server."""
    options = {"roots": data, "client_roots": "trust"} if is_configured else {}

    assert shown(answered(speak, tmp_path, **options)) == [str(tmp_path)]


@pytest.mark.requirement("G-client-roots")
def test_a_client_that_never_counts_is_not_asked(project: ProjectBuilder, speak: Speak) -> None:
    client = speak(capabilities=HAS_ROOTS, client_roots="never", ANSWER_SECS=600)
    client.wire.notify("notifications/roots/list_changed")

    assert shown(client) == [str(project.root)]
    assert requests_in(client.wire) == []


@pytest.mark.requirement("G-client-roots")
@pytest.mark.parametrize("setting", ["within", "WITHIN", "nonsense"])
def test_the_project_bounds_them_where_it_is_all_there_is(
    project: ProjectBuilder, speak: Speak, tmp_path: Path, setting: str
) -> None:
    client = answered(speak, tmp_path, client_roots=setting)

    assert shown(client) == [str(tmp_path if setting == "nonsense" else project.root)]


@pytest.mark.requirement("G-kernel-files")
@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="needs /proc")
def test_nothing_of_the_kernel_is_served_below_any_root(project: ProjectBuilder, speak: Speak) -> None:
    """/proc/self/environ has the server's keys in it."""
    (project.root / "link").symlink_to("/proc/self")
    project.resource("linked", "x")
    (project.root / "resources" / "environ.txt").symlink_to("/proc/self/environ")
    embedded = 'printf "/proc/self/environ\\n/proc/1/status\\n/sys/kernel/notes"'
    project.tool("embed", f'{embedded} > "$MCP_TOOL_RESOURCES_FILE"')
    client = answered(speak, "file:///", env={"API_KEY": "sesame"})
    tried = [
        *(
            ENVIRON,
            "file:////proc/self/environ",
            "file:///proc/self/cwd/../environ",
            "file:///proc/thread-self/environ",
        ),
        *(f"{project.root.as_uri()}/link/environ", f"{project.root.as_uri()}/resources/environ.txt"),
        *("file:///proc/version", "file:///sys/kernel/notes", "file:///dev/stdin", "file:///dev/fd/0"),
        *("file:///proc/self/root/proc/self/environ", "file:///proc/self/task/../environ"),
    ]

    assert shown(client) == ["/"]
    for uri in tried:
        assert "error" in client.request("resources/read", {"uri": uri}), uri
    blocks = client.call_tool("embed")["content"]
    assert [block["type"] for block in blocks if block["type"] != "text"] == []
    assert "sesame" not in str(client.wire.seen)


@pytest.mark.requirement("G-kernel-files")
@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/sys", "/dev", "/proc/self/environ"])
def test_nothing_of_the_kernel_is_a_root(project: ProjectBuilder, speak: Speak, place: str) -> None:
    if not os.path.exists(place):
        pytest.skip(f"needs {place}")
    (project.root / "link").symlink_to(place)
    client = answered(speak, f"file://{place}", project.root / "link")

    assert shown(client) == [str(project.root)]
    assert eventually(lambda: "cannot be a root" in client.wire.stderr)


@pytest.mark.requirement("G-kernel-files")
def test_nor_may_the_operator_name_it(project: ProjectBuilder, start: Start) -> None:
    wire = start(roots="/dev")

    assert wire.wait() == 1
    assert "/dev: this cannot be a root" in wire.stderr


@pytest.mark.requirement("G-kernel-files")
@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="needs /proc")
def test_nor_as_a_directory_of_resources(speak: Speak) -> None:
    client = speak(MODERN, resources_roots="/proc:/sys")

    assert "outside" in client.error("resources/read", {"uri": "file:///proc/version"})["message"]
    assert eventually(lambda: "resources_roots" in client.wire.stderr)


def test_a_directory_holds_what_is_in_it_but_not_the_kernels_files() -> None:
    assert holds("/", "/etc/hosts")
    assert not holds("/", "/proc/version")
    assert not holds("/data", "/database")
    # A project may lie in a memory disk.
    assert holds("/dev/shm/project", "/dev/shm/project/resources/x")
    assert not holds("/dev/shm/project", "/dev/shm/other")
