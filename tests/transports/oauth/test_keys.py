"""The keys of an issuer: where they are found, when they are looked for again, and what a bad issuer cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent
import pytest
import trustme
from gevent import ssl
from gevent.event import AsyncResult
from gevent.pool import Pool
from gevent.pywsgi import WSGIServer
from gevent.server import StreamServer

from mcpgreen.transports.http.oauth import keys
from mcpgreen.transports.http.oauth.keys import Unavailable, keys_in
from mcpgreen.transports.http.oauth.resource_server import ResourceServer, TokenRefused
from tests.support.issuer import Issuer, drip, jwk_of, private_key

PATIENCE_SECS = 5.0
Trusting = Callable[..., ResourceServer]


def refused(server: ResourceServer, token: str) -> TokenRefused:
    with pytest.raises(TokenRefused) as caught:
        server.verify(token)
    return caught.value


def why(refusal: TokenRefused) -> str:
    """What the operator is told; the caller learns only that the keys cannot be had."""
    assert refusal.status == 503
    assert refusal.description == "The issuer's keys cannot be fetched now; try again later."
    return str(refusal.__cause__)


def publish(issuer: Issuer, *names: str) -> None:
    issuer.keys = [jwk_of(private_key(name), kid=name) for name in names]


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "FETCH_PAUSE_SECS", 0.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "FETCH_SECS", 0.2)


@pytest.mark.parametrize(
    ("path", "metadata_at"),
    [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/", "/.well-known/openid-configuration"),
        ("/realms/a", "/.well-known/oauth-authorization-server/realms/a"),
        ("/realms/a", "/realms/a/.well-known/openid-configuration"),
        ("/realms/a", "/.well-known/openid-configuration/realms/a"),
    ],
)
def test_the_metadata_of_an_issuer_is_where_one_of_the_standards_says(
    trusting: Trusting, path: str, metadata_at: str
) -> None:
    issuer = Issuer(path)
    issuer.metadata_at = metadata_at

    assert trusting(issuer=issuer.name).verify(issuer.token())
    assert issuer.requests[-2:] == [metadata_at, "/keys"]
    issuer.stop()


def test_the_operator_may_say_where_the_keys_are(issuer: Issuer, trusting: Trusting) -> None:
    assert trusting(jwks_url=issuer.url + "/keys").verify(issuer.token())
    assert issuer.requests == ["/keys"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_keys_may_be_in_a_file(
    issuer: Issuer, trusting: Trusting, tmp_path: Path, no_pause: None, scheme: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": issuer.keys}))
    server = trusting(jwks_url=f"{scheme}{file}")

    assert server.verify(issuer.token())
    publish(issuer, "second")
    refused(server, issuer.token(key="second"))
    file.write_text(json.dumps({"keys": issuer.keys}))
    assert server.verify(issuer.token(key="second"))
    assert issuer.requests == []


def test_an_issuer_does_not_speak_for_another(issuer: Issuer, server: ResourceServer) -> None:
    issuer.metadata["issuer"] = issuer.name + "/other"

    assert "names another issuer" in why(refused(server, issuer.token()))


@pytest.mark.parametrize(
    "place", ["http://mcp.example.com/keys", "file:///etc/passwd", "/keys", "ftp://127.0.0.1/", 5, None]
)
def test_an_issuer_cannot_send_us_anywhere_for_its_keys(issuer: Issuer, server: ResourceServer, place: Any) -> None:
    issuer.metadata["jwks_uri"] = place

    assert "jwks_uri" in why(refused(server, issuer.token()))


def test_no_redirect_is_followed(issuer: Issuer, server: ResourceServer) -> None:
    issuer.answer = lambda path: ("302 Found", b"")

    assert "status 302" in why(refused(server, issuer.token()))


def test_a_key_that_is_new_is_looked_for(issuer: Issuer, server: ResourceServer, no_pause: None) -> None:
    assert server.verify(issuer.token())
    publish(issuer, "first", "second")

    assert server.verify(issuer.token(key="second"))
    assert server.verify(issuer.token(jti="2"))


def test_a_key_that_was_taken_back_is_good_no_more(
    issuer: Issuer, server: ResourceServer, no_pause: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a token that is remembered, and if no token names a new key: keys are looked for now and then, on the
    side."""
    token = issuer.token()
    assert server.verify(token)
    publish(issuer, "second")
    assert server.verify(token)
    monkeypatch.setattr(keys, "REFRESH_SECS", 0.0)
    assert server.verify(token)  # begins to look

    with gevent.Timeout(PATIENCE_SECS), pytest.raises(TokenRefused, match="no such key"):
        while server.verify(token):
            gevent.sleep(0.001)


def test_unknown_keys_are_looked_for_once_in_a_while(issuer: Issuer, server: ResourceServer) -> None:
    """A flood of them is no flood of requests to the issuer, also if they come at the same time."""
    asked = [gevent.spawn(refused, server, issuer.token(key="stranger", headers={"kid": f"k{n}"})) for n in range(50)]
    gevent.joinall(asked, raise_error=True)
    for number in range(50):
        assert refused(server, issuer.token(key="stranger", headers={"kid": f"x{number}"})).status == 401

    assert issuer.requests.count("/keys") == 1
    assert server.verify(issuer.token())


def test_a_token_that_names_no_key(issuer: Issuer, server: ResourceServer, no_pause: None) -> None:
    assert server.verify(issuer.token(headers={"kid": None}))
    publish(issuer, "first", "second")
    refused(server, issuer.token(key="stranger"))  # so that both are known

    assert "several" in refused(server, issuer.token(headers={"kid": None}, jti="2")).description


def test_an_issuer_that_is_down_is_not_the_fault_of_the_token(issuer: Issuer, server: ResourceServer) -> None:
    issuer.stop()

    refusal = refused(server, issuer.token())
    assert (refusal.status, refusal.error) == (503, "temporarily_unavailable")
    assert "cannot be reached" in why(refusal)


def test_tokens_with_known_keys_are_good_while_the_issuer_is_down(
    issuer: Issuer, server: ResourceServer, no_pause: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.verify(issuer.token())
    issuer.stop()

    assert refused(server, issuer.token(key="second")).status == 503
    monkeypatch.setattr(keys, "REFRESH_SECS", 0.0)
    for number in range(3):
        assert server.verify(issuer.token(jti=str(number)))
        gevent.sleep(0.01)


def test_the_issuer_may_come_back(issuer: Issuer, server: ResourceServer, no_pause: None) -> None:
    issuer.answer = lambda path: ("500 Oops", b"")
    assert refused(server, issuer.token()).status == 503
    issuer.answer = None

    assert server.verify(issuer.token())


def huge(path: str) -> Iterable[bytes]:
    return iter([b" " * 65536] * 100)


BAD_ANSWERS: dict[str, Any] = {
    "huge": (huge, "larger than 262144"),
    "endless": (lambda path: drip(b" " * 65536, 0), "larger than 262144"),
    "slow": (lambda path: drip(b" ", 0.05), "no answer within 0.2 s"),
    "not JSON": (lambda path: ("200 OK", b"<html>"), "not JSON"),
    "a list": (lambda path: ("200 OK", b"[]"), "not a JSON object"),
    "deep": (lambda path: ("200 OK", b"[" * 100_000), "not JSON"),
    "empty": (lambda path: ("200 OK", b""), "not JSON"),
    "an error": (lambda path: ("503 Busy", b""), "status 503"),
}


@pytest.mark.parametrize(("answer", "reason"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_bad_answer_costs_little_and_is_told(
    issuer: Issuer, trusting: Trusting, impatient: None, answer: Any, reason: str
) -> None:
    issuer.answer = answer

    assert reason in why(refused(trusting(jwks_url=issuer.url + "/keys"), issuer.token()))


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 OK\r\nX: "], ids=["nothing", "half a head"])
def test_an_issuer_that_hangs_does_not_hold_up_other_callers(
    issuer: Issuer, trusting: Trusting, impatient: None, says: bytes
) -> None:
    def hang(socket: Any, address: Any) -> None:
        with suppress(OSError):
            socket.sendall(says)
            while True:
                gevent.sleep(0.02)
                socket.sendall(says[-1:])

    hanging = StreamServer(("127.0.0.1", 0), hang, spawn=Pool())  # whose greenlets end with it
    hanging.start()
    server = trusting(jwks_url=f"http://127.0.0.1:{hanging.server_port}/keys")
    refusing = gevent.spawn(refused, server, issuer.token())
    turns = 0
    while not refusing.ready():
        gevent.sleep(0.001)
        turns += 1
    hanging.stop(timeout=0)

    assert "no answer" in why(refusing.get())
    assert turns > 20


def test_few_wait_for_an_issuer_that_hangs_and_nobody_right_after(issuer: Issuer) -> None:
    """Each of them held a connection, and one look followed the other."""
    answer, looks = AsyncResult(), []

    def look() -> Any:
        looks.append(1)
        return answer.get()

    def find() -> None:
        with pytest.raises(Unavailable):
            known.find("made up", "RS256")

    known = keys.KeySet(look, max_waiting=2)
    known.take({"keys": issuer.keys})
    finding = [gevent.spawn(find) for _ in range(6)]
    gevent.joinall(finding[2:], timeout=PATIENCE_SECS, raise_error=True)
    assert [each.ready() for each in finding] == [False] * 2 + [True] * 4
    assert known.find("first", "RS256")
    answer.set_exception(Unavailable("it hangs"))
    gevent.joinall(finding, timeout=PATIENCE_SECS, raise_error=True)
    find()

    assert len(looks) == 1


def test_an_issuer_has_to_prove_its_name(
    issuer: Issuer, trusting: Trusting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS is verified: with the authority in SSL_CERT_FILE the keys are found, without it they are not."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    body = json.dumps({"keys": issuer.keys}).encode()

    def serve(environ: Any, start: Any) -> list[bytes]:
        start("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    secure = WSGIServer(("127.0.0.1", 0), serve, log=None, error_log=None, ssl_context=context)
    secure.start()
    place = f"https://127.0.0.1:{secure.server_port}/keys"
    assert "certificate verify failed" in why(refused(trusting(jwks_url=place), issuer.token()))
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    assert trusting(jwks_url=place).verify(issuer.token())
    other = f"https://localhost:{secure.server_port}/keys"
    assert "certificate verify failed" in why(refused(trusting(jwks_url=other), issuer.token()))
    secure.stop(timeout=0)


UNUSABLE = {
    "no object": 5,
    "for encryption": jwk_of(private_key("first"), use="enc"),
    "for wrapping": jwk_of(private_key("first"), key_ops=["wrapKey"]),
    "a secret": {"kty": "oct", "k": "c2VjcmV0"},
    "a secret that says RSA": {**jwk_of(private_key("first")), "k": "c2VjcmV0"},
    "private": {**jwk_of(private_key("first")), "d": "AQAB"},
    "short": jwk_of(private_key("short", bits=1024)),
    "for HS256": jwk_of(private_key("first"), alg="HS256"),
    "for another kind": jwk_of(private_key("first"), alg="ES256"),
    "for RSA-OAEP": jwk_of(private_key("first"), alg="RSA-OAEP"),
    "of an unknown curve": {**jwk_of(private_key("e", "ES256")), "crv": "secp256k1"},
    "a point that is none": {**jwk_of(private_key("e", "ES256")), "y": "AAAA"},
    "half": {"kty": "RSA", "n": "AQAB"},
    "numbers": {"kty": "RSA", "n": 5, "e": 3},
    "no base64": {"kty": "RSA", "n": "!!!", "e": "\u00e9"},
    "named by a number": jwk_of(private_key("first"), kid=5),
}


@pytest.mark.parametrize("entry", UNUSABLE.values(), ids=UNUSABLE)
def test_a_key_that_cannot_be_used_is_left_out(entry: Any) -> None:
    good = jwk_of(private_key("first"), kid="good")

    assert [key.id for key in keys_in({"keys": [entry, good]})] == ["good"]


@pytest.mark.parametrize("document", [{}, {"keys": {}}, {"keys": "x"}, {"keys": []}])
def test_a_set_without_keys(document: Any) -> None:
    assert keys_in(document) == []
