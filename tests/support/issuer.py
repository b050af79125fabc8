"""An authorization server as far as a resource server sees one: real keys, tokens signed with them, and its documents
over real HTTP on loopback. What it publishes, and how it behaves, can be changed at any time."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import gevent
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gevent.pywsgi import WSGIServer
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

Json = dict[str, Any]

RESOURCE = "https://mcp.example.com/mcp"
CURVES: dict[str, Callable[[], ec.EllipticCurve]] = {
    "ES256": ec.SECP256R1,
    "ES384": ec.SECP384R1,
    "ES512": ec.SECP521R1,
}


def private_key(name: str, algorithm: str = "RS256", bits: int = 2048) -> Any:
    """The same for the same name: to make one takes a while."""
    return _made(name, algorithm, bits)


@cache
def _made(name: str, algorithm: str, bits: int) -> Any:
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm]())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def jwk_of(key: Any, **members: Any) -> Json:
    """The public half of a key, as it is published."""
    kind = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    algorithm = next((value for base, value in kind.items() if isinstance(key, base)), OKPAlgorithm)
    published: Json = algorithm.to_jwk(key.public_key(), as_dict=True)
    return {**published, **members}


def pem_of(key: Any) -> bytes:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def encoded(part: bytes | Json) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


class Issuer:
    """`keys` are what it publishes; `answer` replaces the usual answer to every request, and `requests` are their
    paths."""

    def __init__(self, path: str = "") -> None:
        self.requests: list[str] = []
        self.answer: Callable[[str], Iterable[bytes] | tuple[str, bytes]] | None = None
        self.keys: list[Json] = [jwk_of(private_key("first"), kid="first")]
        self.metadata_at = "/.well-known/oauth-authorization-server" + path
        self._server = WSGIServer(("127.0.0.1", 0), self._serve, log=None, error_log=None)
        self._server.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.name = self.url + path
        self.metadata: Json = {"issuer": self.name, "jwks_uri": self.url + "/keys"}

    def stop(self) -> None:
        self._server.stop(timeout=0)

    def claims(self, **changes: Any) -> Json:
        """Of a good token. None leaves a claim out."""
        now = int(time.time())
        usual = {"iss": self.name, "aud": RESOURCE, "sub": "ada", "iat": now, "exp": now + 300, "scope": "files:read"}
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    def token(
        self,
        *,
        key: str = "first",
        algorithm: str = "RS256",
        headers: Json | None = None,
        payload: bytes | None = None,
        **changes: Any,
    ) -> str:
        """Signed with the key of this name, which need not be published. `payload` is signed as it is."""
        content = json.dumps(self.claims(**changes)).encode() if payload is None else payload
        named = {"kid": key, **(headers or {})}
        header = {name: value for name, value in named.items() if value is not None}
        kind = algorithm if algorithm in (*CURVES, "EdDSA") else "RS256"
        return jwt.PyJWS().encode(content, private_key(key, kind), algorithm=algorithm, headers=header)

    def _serve(self, environ: Json, start: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        self.requests.append(path)
        status, body = "200 OK", b""
        if self.answer is not None:
            answer = self.answer(path)
            if not isinstance(answer, tuple):
                start("200 OK", [("Content-Type", "application/json")])
                return answer
            status, body = answer
        elif path == self.metadata_at:
            body = json.dumps(self.metadata).encode()
        elif path == "/keys":
            body = json.dumps({"keys": self.keys}).encode()
        else:
            status = "404 Not Found"
        start(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def drip(piece: bytes, pause_secs: float) -> Iterable[bytes]:
    """A body that never ends."""
    while True:
        yield piece
        gevent.sleep(pause_secs)
