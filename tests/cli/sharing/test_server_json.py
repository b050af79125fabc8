"""`server-json`: what the MCP registry is told, and what is not guessed."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpgreen.cli.sharing.server_json import namespace_of
from tests.cli.test_commands import mcpgreen
from tests.support.project import ProjectBuilder

META = {"name": "demo", "version": "1.2.3", "title": "Demo", "description": "What it does"}


def printed(project: ProjectBuilder, *arguments: str, **meta: Any) -> dict[str, Any]:
    project.write("server.d/server.meta.json", json.dumps({**META, **meta}))
    done = mcpgreen("server-json", *arguments, "--project-root", str(project.root))
    assert (done.returncode, done.stderr) == (0, "")
    server: dict[str, Any] = json.loads(done.stdout)
    return server


def test_it_says_what_the_registry_demands(project: ProjectBuilder) -> None:
    server = printed(project, "--name", "io.github.ada")

    schema = server.pop("$schema")
    assert re.fullmatch(r"https://static\.modelcontextprotocol\.io/schemas/[0-9-]+/server\.schema\.json", schema)
    assert server == {**META, "name": "io.github.ada/demo"}


def test_the_namespace_comes_from_the_website_and_else_from_the_repository(project: ProjectBuilder) -> None:
    server = printed(project, websiteUrl="https://tools.example.com/demo", repository="https://github.com/ada/demo")
    assert (server["name"], server["websiteUrl"]) == ("com.example.tools/demo", "https://tools.example.com/demo")
    assert server["repository"] == {"url": "https://github.com/ada/demo", "source": "github"}

    server = printed(project, repository={"type": "git", "url": "https://github.com/ada/demo"})
    assert server["name"] == "io.github.ada/demo"


@pytest.mark.parametrize(
    ("address", "namespace"),
    [
        ("https://www.example.com/x", "com.example"),
        ("https://ada.github.io/demo", "io.github.ada"),
        ("https://github.com/ada", "io.github.ada"),
        ("https://github.com", ""),
        ("https://gitlab.com/ada/demo", ""),
        ("http://localhost:8000", ""),
        ("http://127.0.0.1/", ""),
        ("not an address", ""),
        ("", ""),
    ],
)
def test_an_address_says_whose_namespace_it_is(address: str, namespace: str) -> None:
    assert namespace_of(address) == namespace


@pytest.mark.parametrize(
    ("arguments", "meta", "status", "reason"),
    [
        ([], {}, 1, "--name io.github.YOU"),
        ([], {"repository": "https://gitlab.com/ada/demo"}, 1, "--name io.github.YOU"),
        (["--name", "demo"], {}, 1, "this is not a valid registry name"),
        (["--name", "a/b/c"], {}, 1, "this is not a valid registry name"),
        (["--name", "io.github.ada"], {"description": "x" * 101}, 1, "1 to 100 characters"),
        (["--name", "io.github.ada"], {"description": ""}, 1, "1 to 100 characters"),
        (["--name", "io.github.ada", "--bundle", "x.mcpb"], {}, 2, "Use --bundle and --url together"),
        (["--name", "io.github.ada", "--bundle", "/no/x.mcpb", "--url", "https://x/x.mcpb"], {}, 1, "cannot be read"),
    ],
)
def test_what_is_missing_is_not_guessed(
    project: ProjectBuilder, arguments: list[str], meta: dict[str, Any], status: int, reason: str
) -> None:
    project.write("server.d/server.meta.json", json.dumps({**META, **meta}))

    done = mcpgreen("server-json", *arguments, "--project-root", str(project.root))

    assert (done.returncode, done.stdout) == (status, "")
    assert reason in done.stderr


def test_a_bundle_and_an_image_become_packages(project: ProjectBuilder, tmp_path: Path) -> None:
    made = tmp_path / "demo.mcpb"
    made.write_bytes(b"zip")

    server = printed(
        project,
        *("--name", "io.github.ada", "--bundle", str(made), "--url", "https://example.com/demo.mcpb"),
        *("--image", "ghcr.io/ada/demo:1.2.3"),
    )

    assert server["packages"] == [
        {
            "registryType": "mcpb",
            "identifier": "https://example.com/demo.mcpb",
            "fileSha256": hashlib.sha256(b"zip").hexdigest(),
            "transport": {"type": "stdio"},
        },
        {"registryType": "oci", "identifier": "ghcr.io/ada/demo:1.2.3", "transport": {"type": "stdio"}},
    ]
