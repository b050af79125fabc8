"""Downloads of shell tools, through the real https provider from a real site on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.providers.conftest import authority, site  # noqa: F401 (fixtures)
from tests.providers.site import Site

from .conftest import SDK, Bench

DOWNLOAD = 'mcp_download_safe --url "$URL" --out "f 1"'


@pytest.fixture
def host(full: Bench, authority: Any, site: Site) -> Bench:  # noqa: F811
    """A host that trusts the site; the guard is open for its address, but no host is allowed."""
    return trusting(full, authority, site)


def trusting(bench: Bench, authority: Any, site: Site) -> Bench:  # noqa: F811
    certificate = bench.directory / "authority.pem"
    authority.cert_pem.write_to_path(str(certificate))
    bench.env.update(
        URL=f"https://127.0.0.1:{site.port}/ok",
        BASE=f"https://127.0.0.1:{site.port}",
        CURL_CA_BUNDLE=str(certificate),
        MCPGREEN_NET_ALLOW_ADDRESSES="127.0.0.1",
        MCPBASH_HOME=str(SDK.parent),
        MCPBASH_FRAMEWORK_VERSION="1.2",
    )
    return bench


def test_a_download_is_saved_byte_for_byte(host: Bench) -> None:
    run = host.shell(f"{DOWNLOAD} --allow 127.0.0.1")
    assert (run.exit_code, run.result) == (0, {"success": True, "bytes": 9, "path": "f 1"})
    assert (host.directory / "f 1").read_bytes() == b"caf\xc3\xa9\n\x00\xff\n"


def test_nothing_else_is_left_beside_a_download(host: Bench) -> None:
    before = set(host.directory.iterdir())
    host.shell(f"{DOWNLOAD} --allow 127.0.0.1; {DOWNLOAD} --allow 127.0.0.1 --max-bytes 2; {DOWNLOAD}")
    assert {path.name for path in set(host.directory.iterdir()) - before} == {"f 1", "tool.sh"}


def test_allow_is_stronger_than_what_the_server_allows(host: Bench) -> None:
    run = host.shell(
        f"{DOWNLOAD} --allow example.com", MCPGREEN_HTTPS_ALLOW_HOSTS="127.0.0.1", MCPGREEN_HTTPS_ALLOW_ALL="true"
    )
    assert run.result["error"]["type"] == "host_blocked"


@pytest.mark.parametrize("server", ["", "127.0.0.1"])
def test_deny_is_added_to_what_the_server_denies(host: Bench, server: str) -> None:
    denied = "example.com" if server else "127.0.0.1"
    run = host.shell(f"{DOWNLOAD} --allow 127.0.0.1 --deny {denied}", MCPBASH_HTTPS_DENY_HOSTS=server)
    assert run.result["error"]["type"] == "host_blocked"


@pytest.mark.parametrize(
    ("path", "options", "kind", "attempts"),
    [
        ("broken", "--retry 3 --retry-delay 0.01", "network_error", 3),
        ("broken", "", "network_error", 1),
        ("big", "--max-bytes 10 --retry 3", "size_exceeded", 1),
        ("moved", "--retry 3", "redirect", 1),
        ("slow", "--timeout 1", "network_error", 1),
    ],
)
def test_a_failed_download_says_why(
    host: Bench,
    site: Site,  # noqa: F811
    path: str,
    options: str,
    kind: str,
    attempts: int,
) -> None:
    asked = len(site.paths)
    run = host.shell(f'mcp_download_safe --url "$BASE/{path}" --out f --allow 127.0.0.1 {options}; echo went on >&2')
    assert (run.exit_code, run.result["success"], run.result["error"]["type"]) == (0, False, kind)
    assert run.result["error"]["message"]
    assert run.result["error"].get("location") == ("https://elsewhere.example/new" if kind == "redirect" else None)
    assert (len(site.paths) - asked, (host.directory / "f").exists()) == (attempts, False)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("--out f", "invalid_url"),
        ("--url '' --out f", "invalid_url"),
        ("--url https://example.com", "invalid_params"),
        ("--url", "invalid_params"),
        ("--url https://example.com --out f positional", "invalid_params"),
        ("--url https://example.com --out f --loud", "invalid_params"),
        ("--url https://example.com --out f --max-bytes x", "invalid_params"),
        ("--url https://example.com --out f --timeout 0", "invalid_params"),
        ("--url https://example.com --out f --timeout 61", "invalid_params"),
        ("--url https://example.com --out f --retry 0", "invalid_params"),
        ("--url https://example.com --out f --retry-delay x", "invalid_params"),
        ("--url http://example.com --out f", "invalid_url"),
        ("--url https://example.com --out /nonexistent/f", "write_error"),
        ("--url https://example.com --out .", "write_error"),
    ],
)
def test_a_download_that_makes_no_sense_is_not_tried(full: Bench, arguments: str, kind: str) -> None:
    run = full.shell(f"mcp_download_safe {arguments}", MCPBASH_HOME=str(SDK.parent))
    assert (run.exit_code, run.result["success"], run.result["error"]["type"]) == (0, False, kind)


def provider(bench: Bench, script: str) -> str:
    """A home with a provider of our own making."""
    home = bench.directory / "home"
    (home / "providers").mkdir(parents=True)
    (home / "providers" / "https.sh").write_text(script, encoding="utf-8")
    return str(home)


@pytest.mark.parametrize("status", [1, 2, 3, 126, 127])
def test_a_provider_that_fails_otherwise_is_named(full: Bench, status: int) -> None:
    home = provider(full, f"echo odd >&2; exit {status}")
    run = full.shell("mcp_download_safe --url https://example.com --out f", MCPBASH_HOME=home)
    assert run.result["error"] == {"type": "provider_error", "message": "odd"}


def test_a_file_of_the_users_keeps_its_content_when_the_download_fails(full: Bench) -> None:
    home = provider(full, "echo half; exit 5")
    (full.directory / "f").write_text("mine", encoding="utf-8")
    full.shell("mcp_download_safe --url https://example.com --out f", MCPBASH_HOME=home)
    assert (full.directory / "f").read_text(encoding="utf-8") == "mine"


def test_or_fail_prints_the_path_or_ends_the_script(full: Bench) -> None:
    call = 'p=$(mcp_download_safe_or_fail --url https://example.com --out f); echo "<$p>"'
    good = provider(full, "echo content")
    assert full.shell(call, MCPBASH_HOME=good).stdout == "<f>\n"
    (Path(good) / "providers" / "https.sh").write_text("echo no >&2; exit 4", encoding="utf-8")
    run = full.shell(call, MCPBASH_HOME=good)
    assert (run.exit_code, run.stdout) == (1, "")
    assert run.error == {"code": -32602, "message": "Download failed (host_blocked): no", "data": None}
