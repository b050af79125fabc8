"""The providers of the network as clients reach them: `resources/read`, a process, a site on loopback."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.providers.conftest import Desk
from tests.providers.site import Site
from tests.support.client import Client, Json, Speak
from tests.support.project import ProjectBuilder
from tests.support.waiting import eventually
from tests.support.wire import LATEST_HANDSHAKE, MODERN


def read(client: Client, uri: str) -> Json:
    (contents,) = client.result("resources/read", {"uri": uri})["contents"]
    return contents


@pytest.fixture
def open_guard(desk: Desk) -> dict[str, Any]:
    """Settings that let both providers speak to 127.0.0.1, and to nobody else."""
    hosts = {"https_allow_hosts": "127.0.0.1", "git_allow_hosts": "127.0.0.1", "net_allow_addresses": "127.0.0.1"}
    authority = {"SSL_CERT_FILE": desk.env["SSL_CERT_FILE"]}
    return {**hosts, "enable_git_provider": "true", "env": authority}


@pytest.mark.requirement("G-providers", "P-122")
@pytest.mark.parametrize("revision", [LATEST_HANDSHAKE, MODERN])
def test_a_page_of_the_web_is_a_resource(
    project: ProjectBuilder, speak: Speak, site: Site, open_guard: dict[str, Any], revision: str
) -> None:
    uri = f"https://127.0.0.1:{site.port}/ok"
    project.described("page", uri=uri, mimeType="text/x-page")
    contents = read(speak(revision, **open_guard), uri)

    assert (contents["uri"], contents["mimeType"]) == (uri, "text/x-page")
    assert base64.b64decode(contents["blob"]) == b"caf\xc3\xa9\n\x00\xff\n"


@pytest.mark.requirement("G-providers", "G-templates")
def test_a_template_of_the_web_needs_no_script(
    project: ProjectBuilder, speak: Speak, site: Site, open_guard: dict[str, Any]
) -> None:
    project.described("echo", uriTemplate=f"https://127.0.0.1:{site.port}/request{{?q}}", mimeType="application/json")
    contents = read(speak(**open_guard), f"https://127.0.0.1:{site.port}/request?q=a%20b")

    assert contents["mimeType"] == "application/json"
    assert '"path": "/request?q=a%20b"' in contents["text"]


@pytest.mark.requirement("G-providers", "P-122")
def test_a_file_of_a_repository_is_a_resource(
    project: ProjectBuilder, speak: Speak, git_site: Site, open_guard: dict[str, Any]
) -> None:
    uri = f"git+https://127.0.0.1:{git_site.port}/git/plain.git#v1:README.md"

    assert read(speak(**open_guard), uri) == {"uri": uri, "mimeType": "text/markdown", "text": "first\n"}


@pytest.mark.requirement("G-providers", "G-resource-errors")
@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/missing", -32603, "HTTP error: 404"),
        ("/moved", -32603, "redirect:https://elsewhere.example/new"),
        ("/big", -32603, "larger than 1000 bytes"),
    ],
)
def test_what_the_site_says_reaches_the_client(
    speak: Speak, site: Site, open_guard: dict[str, Any], path: str, code: int, message: str
) -> None:
    client = speak(https_max_bytes=1000, **open_guard)
    error = client.error("resources/read", {"uri": f"https://127.0.0.1:{site.port}{path}"})

    assert error["code"] == code
    assert message in error["message"]


@pytest.mark.requirement("G-providers", "G-cancel-tree")
def test_a_site_that_does_not_answer_can_be_left(
    speak: Speak, site: Site, desk: Desk, open_guard: dict[str, Any]
) -> None:
    client = speak(**open_guard)
    running = client.start("resources/read", {"uri": f"https://127.0.0.1:{site.port}/silent"})
    eventually(lambda: "/silent" in site.paths)
    client.wire.notify("notifications/cancelled", {"requestId": running})
    children = f"/proc/{client.wire.process.pid}/task/{client.wire.process.pid}/children"

    def has_only_its_guardian() -> bool:
        with open(children, encoding="ascii") as file:
            return len(file.read().split()) <= 1

    eventually(has_only_its_guardian)


@pytest.mark.requirement("G-providers")
def test_no_connection_is_made_without_settings(speak: Speak, site: Site) -> None:
    client = speak()
    before = site.connections
    uris = [f"https://127.0.0.1:{site.port}/ok", f"git+https://127.0.0.1:{site.port}/git/plain.git#v1:README.md"]

    assert [client.error("resources/read", {"uri": uri})["code"] for uri in uris] == [-32602, -32602]
    assert site.connections == before
