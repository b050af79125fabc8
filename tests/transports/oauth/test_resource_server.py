"""What clients are told: metadata and challenges, as the official client reads them; what keeps us from starting."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
)
from mcp.shared.auth import ProtectedResourceMetadata

from mcpgreen.errors import ProjectError
from mcpgreen.transports.http.oauth.resource_server import (
    ResourceServer,
    TokenRefused,
    metadata_paths,
    metadata_url,
)
from tests.support.issuer import RESOURCE, Issuer, jwk_of, private_key

Trusting = Callable[..., ResourceServer]


def told(challenge: str, status: int = 401) -> httpx2.Response:
    return httpx2.Response(status, headers={"WWW-Authenticate": challenge})


def test_the_metadata_says_where_to_get_a_token(issuer: Issuer, trusting: Trusting) -> None:
    metadata = trusting(required_scopes="mcp:use").metadata(scopes=["files:write", "mcp:use"])

    assert metadata == {
        "resource": RESOURCE,
        "authorization_servers": [issuer.name],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp:use", "files:write"],
        "resource_name": "Notes",
    }
    read = ProtectedResourceMetadata.model_validate(metadata)
    assert str(read.resource) == RESOURCE
    assert [str(each).rstrip("/") for each in read.authorization_servers] == [issuer.name]


def test_the_metadata_names_scopes_only_if_there_are_any(server: ResourceServer) -> None:
    assert "scopes_supported" not in server.metadata()


@pytest.mark.parametrize("origin", ["https://mcp.example.com", "https://mcp.example.com:8443", "http://127.0.0.1:8808"])
@pytest.mark.parametrize("path", ["/mcp", "/a/b"])
def test_the_metadata_is_where_clients_look_for_it(origin: str, path: str) -> None:
    resource = origin + path

    assert metadata_url(resource) == f"{origin}/.well-known/oauth-protected-resource{path}"
    looked_for = build_protected_resource_metadata_discovery_urls(None, resource)
    assert looked_for == [origin + each for each in metadata_paths(resource)]


def test_the_metadata_of_a_whole_host() -> None:
    assert metadata_paths("https://mcp.example.com/") == ("/.well-known/oauth-protected-resource",) * 2


def test_who_brings_no_token_is_told_where_to_get_one(trusting: Trusting) -> None:
    answer = told(trusting(required_scopes="mcp:use files:read").challenge())

    assert extract_resource_metadata_from_www_auth(answer) == metadata_url(RESOURCE)
    assert extract_scope_from_www_auth(answer) == "mcp:use files:read"
    assert extract_field_from_www_auth(answer, "error") is None


def test_a_refusal_is_a_challenge(issuer: Issuer, trusting: Trusting) -> None:
    server = trusting(required_scopes="mcp:use")
    with pytest.raises(TokenRefused) as caught:
        server.verify(issuer.token())
    answer = told(server.challenge_for(caught.value), caught.value.status)

    assert answer.status_code == 403
    assert extract_field_from_www_auth(answer, "error") == "insufficient_scope"
    assert extract_field_from_www_auth(answer, "error_description") == "The access token lacks mcp:use"
    assert extract_scope_from_www_auth(answer) == "mcp:use"
    assert extract_resource_metadata_from_www_auth(answer) == metadata_url(RESOURCE)


def test_nothing_breaks_out_of_a_challenge(server: ResourceServer) -> None:
    challenge = server.challenge(error="invalid_token", description='x", error="none\\"\r\nSet-Cookie: a=\u00e9')

    assert challenge.startswith(
        "Bearer error=\"invalid_token\", error_description=\"x', error='none''??Set-Cookie: a=?\", resource_metadata="
    )


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an issuer without TLS": ({"issuer": "http://issuer.example.com"}, "MCPGREEN_HTTP_OAUTH_ISSUER: it must begin"),
    "an issuer that looks like loopback": ({"issuer": "http://localhost.example.com"}, "must begin with https"),
    "an issuer that is no URL": ({"issuer": "issuer.example.com"}, "must be an https:// URL"),
    "an issuer with a port that is none": ({"issuer": "https://a:b"}, "is not a URL"),
    "an issuer with a query": ({"issuer": "https://issuer.example.com/?a=1"}, "no query"),
    "an issuer with a user": ({"issuer": "https://me:secret@issuer.example.com"}, "not have a user"),
    "keys without TLS": ({"jwks_url": "http://issuer.example.com/keys"}, "MCPGREEN_HTTP_OAUTH_JWKS_URL: it must begin"),
    "keys in a file that is missing": ({"jwks_url": "/nowhere/keys.json"}, "JWKS_URL: /nowhere/keys.json: it cannot"),
    "keys in what is no file": ({"jwks_url": "/dev/zero"}, "cannot be read"),
    "a scope that is none": ({"required_scopes": 'a"b'}, "a scope is"),
    "keys without an issuer": ({"issuer": "", "jwks_url": "https://a/keys"}, "there is no issuer for it"),
    "an audience without an issuer": ({"issuer": "", "audience": "x"}, "there is no issuer for it"),
    "scopes without an issuer": ({"issuer": "", "required_scopes": "x"}, "there is no issuer for it"),
}


@pytest.mark.parametrize(("settings", "reason"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_keeps_the_server_from_starting(
    trusting: Trusting, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        trusting(**settings)

    assert reason in str(caught.value)


@pytest.mark.parametrize("content", ["", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', "[1"])
def test_a_file_without_keys_keeps_the_server_from_starting(trusting: Trusting, tmp_path: Path, content: str) -> None:
    (tmp_path / "keys.json").write_text(content)

    with pytest.raises(ProjectError, match="MCPGREEN_HTTP_OAUTH_JWKS_URL"):
        trusting(jwks_url=tmp_path / "keys.json")


def test_an_issuer_that_is_down_does_not_keep_the_server_from_starting(issuer: Issuer, trusting: Trusting) -> None:
    issuer.stop()

    assert trusting()


def test_without_the_extra_the_server_says_what_to_install(
    issuer: Issuer, trusting: Trusting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("mcpgreen.transports.http.oauth.")]:
        if not name.endswith(".configuration"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)

    with pytest.raises(ProjectError, match=r"\[oauth\] extra; see docs/install\.md#extras"):
        trusting()


def test_a_file_of_keys_may_hold_many_and_others(issuer: Issuer, trusting: Trusting, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{"kty": "oct", "k": "x"}, jwk_of(private_key("first"), kid="first")]}))

    assert trusting(jwks_url=file).verify(issuer.token())
