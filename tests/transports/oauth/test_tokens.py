"""Which access tokens let somebody in, and who that is: real keys, real signatures, an issuer on loopback."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcpgreen.transports.http.oauth.resource_server import MAX_TOKEN_CHARS, ResourceServer, TokenRefused
from tests.support.issuer import RESOURCE, Issuer, encoded, jwk_of, pem_of, private_key

LATER = 86_400  # seconds: more than a run of the tests takes


def refused(server: ResourceServer, token: str) -> TokenRefused:
    with pytest.raises(TokenRefused) as caught:
        server.verify(token)
    assert not any(part and part in caught.value.description for part in token.split("."))
    return caught.value


def test_a_good_token_says_who_calls(issuer: Issuer, server: ResourceServer) -> None:
    principal = server.verify(issuer.token(scope="files:read files:write", jti="7"))

    assert principal.name == f"{issuer.name}|ada"
    assert principal.scopes == {"files:read", "files:write"}
    assert principal.claims["jti"] == "7"
    assert json.loads(principal.claims_json) == principal.claims


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
def test_what_may_sign_by_default(issuer: Issuer, server: ResourceServer, algorithm: str) -> None:
    kind = algorithm if algorithm.startswith("E") else "RS256"
    issuer.keys = [jwk_of(private_key("own", kind), kid="own", use="sig")]

    assert server.verify(issuer.token(key="own", algorithm=algorithm)).claims["sub"] == "ada"


@pytest.mark.parametrize("scopes", [{"scope": None, "scp": ["a", "b"]}, {"scope": ["a", "b"]}, {"scope": "b  a"}])
def test_scopes_as_issuers_write_them(issuer: Issuer, server: ResourceServer, scopes: Any) -> None:
    assert server.verify(issuer.token(**scopes)).scopes == {"a", "b"}


@pytest.mark.parametrize("scopes", [{"scope": None}, {"scope": 5}, {"scope": {"a": 1}}, {"scope": [1]}])
def test_a_token_without_scopes_has_none(issuer: Issuer, server: ResourceServer, scopes: Any) -> None:
    assert server.verify(issuer.token(**scopes)).scopes == frozenset()


def test_a_client_on_its_own_is_not_a_user_of_that_name(issuer: Issuer, server: ResourceServer) -> None:
    client = server.verify(issuer.token(sub=None, client_id="robot"))

    assert client != server.verify(issuer.token(sub="robot"))
    assert client != server.verify(issuer.token(sub="client robot"))
    assert client == server.verify(issuer.token(sub=None, azp="robot"))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "expired": ({"exp": int(time.time()) - LATER}, "expired"),
    "without an end": ({"exp": None}, "no exp"),
    "not yet valid": ({"nbf": int(time.time()) + LATER}, "not valid yet"),
    "from the future": ({"iat": int(time.time()) + LATER}, "not valid yet"),
    "for another server": ({"aud": "https://other.example.com/mcp"}, "another audience"),
    "for a part of our name": ({"aud": RESOURCE[:-1]}, "another audience"),
    "for more than our name": ({"aud": RESOURCE + "/other"}, "another audience"),
    "for our host": ({"aud": "https://mcp.example.com"}, "another audience"),
    "for nobody": ({"aud": None}, "no aud"),
    "for no one in a list": ({"aud": []}, "no aud|another audience"),
    "for an object": ({"aud": {RESOURCE: 1}}, "aud is neither"),
    "for a list with more than texts": ({"aud": [RESOURCE, 1]}, "aud is neither"),
    "from another issuer": ({"iss": "https://other.example.com"}, "another issuer"),
    "from no issuer": ({"iss": None}, "another issuer"),
    "from several issuers": ({"iss": ["https://other.example.com"]}, "another issuer"),
    "of nobody": ({"sub": None}, "neither a subject nor a client"),
    "of no text": ({"sub": 5, "client_id": "robot"}, "neither a subject|cannot be verified"),
    "of somebody with a long name": ({"sub": "a" * 2000}, "too long"),
    "that ends with a text": ({"exp": str(int(time.time()) + LATER)}, "exp is not a time"),
    "that ends with yes": ({"exp": True}, "exp is not a time"),
    "that begins with null in a list": ({"nbf": [None]}, "nbf is not a time"),
    "bound to a key": ({"cnf": {"jkt": "abc"}}, "bound to its holder's key"),
}


@pytest.mark.parametrize(("claims", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_token_is_refused(issuer: Issuer, server: ResourceServer, claims: dict[str, Any], reason: str) -> None:
    refusal = refused(server, issuer.token(**claims))

    assert (refusal.status, refusal.error) == (401, "invalid_token")
    assert any(each in refusal.description for each in reason.split("|")), refusal.description


def test_claims_that_are_too_long_for_a_variable(issuer: Issuer, server: ResourceServer) -> None:
    """A token of letters that take more room in JSON: what no script can be told of lets nobody in."""
    claims = json.dumps(issuer.claims(names="\u20ac" * 3000), ensure_ascii=False).encode()

    assert "claims cannot be passed on" in refused(server, issuer.token(payload=claims)).description


def test_the_clocks_may_differ_a_little(issuer: Issuer, trusting: Callable[..., ResourceServer]) -> None:
    now = int(time.time())
    late, early = issuer.token(exp=now - 30), issuer.token(nbf=now + 30, iat=now + 30)

    for token in (late, early):
        assert trusting().verify(token)
    for token in (issuer.token(exp=now - 90), issuer.token(nbf=now + 90, iat=now + 90)):
        refused(trusting(), token)


@pytest.mark.parametrize("audience", [RESOURCE, RESOURCE + "/", ["https://other.example.com", RESOURCE]])
def test_a_token_may_be_for_several(issuer: Issuer, server: ResourceServer, audience: Any) -> None:
    assert server.verify(issuer.token(aud=audience))


def test_the_operator_may_choose_the_audience(issuer: Issuer, trusting: Callable[..., ResourceServer]) -> None:
    server = trusting(audience="api://notes, notes")

    assert server.verify(issuer.token(aud="api://notes"))
    assert server.verify(issuer.token(aud=["x", "notes"]))
    refused(server, issuer.token())


@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "nOnE", "", "HS256", "hs256", "RS256 ", "ES512", None, 5, ["RS256"]]
)
def test_an_algorithm_that_is_not_on_the_list(issuer: Issuer, server: ResourceServer, name: Any) -> None:
    header = {"typ": "JWT", "alg": name, "kid": "first"}
    bare = f"{encoded(header)}.{encoded(issuer.claims())}"

    for token in (f"{bare}.", f"{bare}.{encoded(b'x' * 256)}", f"{bare}.{issuer.token().rpartition('.')[2]}"):
        assert "algorithm is not allowed" in refused(server, token).description
    assert issuer.requests == []


@pytest.mark.parametrize("secret", ["pem", "pem without line end", "modulus"])
def test_the_public_key_is_no_secret(issuer: Issuer, server: ResourceServer, secret: str) -> None:
    """HS256 with what everybody can read, as some libraries once took it."""
    server.verify(issuer.token())
    key = private_key("first")
    shared = {"pem": pem_of(key), "pem without line end": pem_of(key).strip(), "modulus": issuer.keys[0]["n"].encode()}
    for algorithm in ("HS256", "RS256"):
        signed = f"{encoded({'alg': algorithm, 'kid': 'first'})}.{encoded(issuer.claims())}"
        mac = hmac.new(shared[secret], signed.encode(), hashlib.sha256).digest()
        refused(server, f"{signed}.{encoded(mac)}")


def test_a_signature_of_somebody_else(issuer: Issuer, server: ResourceServer) -> None:
    mine = issuer.token(key="stranger", headers={"kid": "first"})
    assert "signature is wrong" in refused(server, mine).description

    head, claims, signature = issuer.token().split(".")
    other = encoded(issuer.claims(sub="root"))
    assert "signature is wrong" in refused(server, f"{head}.{other}.{signature}").description
    refused(server, f"{head}.{claims}.")


def test_a_key_is_good_for_its_own_algorithm_alone(issuer: Issuer, server: ResourceServer) -> None:
    issuer.keys = [jwk_of(private_key("first"), kid="first", alg="RS512")]

    refused(server, issuer.token(algorithm="RS256"))
    assert server.verify(issuer.token(algorithm="RS512"))


def test_headers_that_bring_keys_are_not_looked_at(issuer: Issuer, server: ResourceServer) -> None:
    stranger = private_key("stranger")
    headers = {
        "jku": f"{issuer.url}/theirs",
        "x5u": f"{issuer.url}/theirs",
        "jwk": jwk_of(stranger, kid="first"),
        "x5c": [encoded(pem_of(stranger))],
    }

    assert server.verify(issuer.token(headers=headers))
    assert (
        "signature is wrong"
        in refused(server, issuer.token(key="stranger", headers={**headers, "kid": "first"})).description
    )
    assert "no such key" in refused(server, issuer.token(key="stranger", headers=headers)).description
    assert "/theirs" not in issuer.requests


CRITICAL = [{"crit": ["exp"]}, {"crit": ["b64"], "b64": True}, {"crit": []}, {"crit": "x"}, {"b64": False}]
OTHER_KINDS = [{"typ": kind} for kind in ("dpop+jwt", "logout+jwt", "id_token+jwt", "JOSE", 5, ["JWT"])]


@pytest.mark.parametrize("headers", [*CRITICAL, *OTHER_KINDS])
def test_critical_extensions_and_other_kinds_of_jwt_are_refused(
    issuer: Issuer, server: ResourceServer, headers: dict[str, Any]
) -> None:
    _, claims, signature = issuer.token().split(".")
    header = encoded({"alg": "RS256", "kid": "first", **headers})
    reason = "another kind" if "typ" in headers else "extension"

    assert reason in refused(server, f"{header}.{claims}.{signature}").description


@pytest.mark.parametrize("kind", [None, "JWT", "at+jwt", "AT+JWT", "application/at+jwt"])
def test_kinds_of_access_tokens(issuer: Issuer, server: ResourceServer, kind: str | None) -> None:
    assert server.verify(issuer.token(headers={"typ": kind}))


def test_a_claim_that_occurs_twice(issuer: Issuer, server: ResourceServer) -> None:
    once = json.dumps(issuer.claims())
    for twice in (
        once[:-1] + ', "sub": "root"}',
        once[:-1] + ', "x": {"a": 1, "a": 2}}',
        once[:-1] + ', "\\u0073ub": "root"}',
    ):
        assert "payload cannot be read" in refused(server, issuer.token(payload=twice.encode())).description
    head = encoded(b'{"alg": "RS256", "kid": "other", "kid": "first"}')
    assert "header cannot be read" in refused(server, f"{head}.{encoded(issuer.claims())}.AAAA").description


MALFORMED = {
    "empty": "",
    "a word": "token",
    "two parts": "e30.e30",
    "four parts": "e30.e30.e30.e30",
    "an encrypted one": "e30.e30.e30.e30.e30",
    "empty parts": "..",
    "no base64": "!!!.e30.e30",
    "a space": "e30 .e30.e30",
    "no ASCII": "e30.e30.\u00e9",
    "half of a pair": "e30.e30.\ud800",
    "NUL": "e30\0.e30.e30",
    "no JSON": f"{encoded(b'{')}.e30.e30",
    "a list": f"{encoded(b'[]')}.e30.e30",
    "no UTF-8": f"{encoded(bytes([0xFF, 0xFE]))}.e30.e30",
    "deep": f"{encoded(b'[' * 9000)}.e30.e30",
    **{
        what: f"{encoded({'alg': 'RS256'})}.{encoded(claims)}.e30"
        for what, claims in {
            "deep claims": b'{"a":' * 2000,
            "NaN": b'{"exp":NaN}',
            "infinity": b'{"exp":1e999}',
            "many digits": b'{"exp":%s}' % (b"9" * 6000),
        }.items()
    },
}


@pytest.mark.parametrize("token", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_token(issuer: Issuer, server: ResourceServer, token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        server.verify(token)

    assert (caught.value.status, caught.value.error) == (401, "invalid_token")
    assert issuer.requests == []


@pytest.mark.parametrize("key_id", ["", 5, ["first"], {"a": 1}, "a" * 600])
def test_a_name_of_a_key_that_is_none(issuer: Issuer, server: ResourceServer, key_id: Any) -> None:
    head = encoded({"alg": "RS256", "kid": key_id})

    refused(server, f"{head}.{encoded(issuer.claims())}.AAAA")
    assert issuer.requests == []


def test_a_token_that_is_too_large(issuer: Issuer, server: ResourceServer) -> None:
    large = issuer.token(payload=json.dumps(issuer.claims(x="y" * MAX_TOKEN_CHARS)).encode())

    assert "longer than 16384" in refused(server, large).description


def test_a_scope_that_everything_needs(issuer: Issuer, trusting: Callable[..., ResourceServer]) -> None:
    server = trusting(required_scopes="mcp:use files:read")

    assert server.verify(issuer.token(scope="files:read mcp:use other"))
    refusal = refused(server, issuer.token(scope="files:read"))
    assert (refusal.status, refusal.error) == (403, "insufficient_scope")
    assert refusal.scopes == ("mcp:use", "files:read")


def test_a_token_that_is_remembered_expires_all_the_same(
    issuer: Issuer, trusting: Callable[..., ResourceServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = trusting()
    token = issuer.token()
    assert server.verify(token) is server.verify(token)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + LATER)

    monkeypatch.setattr("jwt.api_jwt.datetime", _later_datetime())
    assert "expired" in refused(server, token).description


def _later_datetime() -> Any:
    from datetime import datetime, timedelta

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=LATER)

    return Later


def test_only_so_many_tokens_are_remembered(
    issuer: Issuer, server: ResourceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpgreen.transports.http.oauth.resource_server.MAX_KEPT_TOKENS", 3)
    tokens = [issuer.token(jti=str(number)) for number in range(5)]
    kept = [server.verify(token) for token in tokens]

    assert server.verify(tokens[4]) is kept[4]
    assert server.verify(tokens[0]) is not kept[0]
