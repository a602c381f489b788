"""An OpenID provider on loopback whose answers a test replaces: what is right unless the test says otherwise, each signed for real."""

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jws
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET, SUBJECT = "docs", "a-secret-of-the-client", "olga"
KEY = RSAKey.generate_key(2048, {"kid": "one"})


def encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


class FaultyProvider(ThreadingHTTPServer):
    """`metadata`, `claims`, `userinfo` and `token` replace fields of right answers, those with None leave them out. `bodies` are whole
    answers by path. `algorithm` signs the ID token; `asked` has the paths of all requests.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.metadata, self.claims, self.userinfo, self.token = ({} for _ in range(4))  # type: dict[str, Any]
        self.bodies = dict[str, bytes]()
        self.algorithm, self.nonce, self.endless, self.sent = "RS256", "", "", 0
        self.asked, self.led = list[str](), dict[str, str]()

    def way_back(self, led: str, **query: str) -> str:
        """The address to which the provider leads somebody who was led to it by this one."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(led).query).items()}
        self.led, self.nonce = asked, asked["nonce"]
        values = {"state": asked["state"], **(query or {"code": "x"})}
        return f"{asked['redirect_uri']}?" + "&".join(f"{name}={value}" for name, value in values.items())

    def answer(self, path: str) -> bytes:
        """The body of the answer for this path."""
        if path in self.bodies:
            return self.bodies[path]
        right: dict[str, dict[str, Any]] = {
            "/.well-known/openid-configuration": {
                "issuer": self.address,
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "userinfo_endpoint": f"{self.address}/userinfo",
                "jwks_uri": f"{self.address}/jwks",
                "id_token_signing_alg_values_supported": ["RS256"],
                **self.metadata,
            },
            "/userinfo": {"sub": SUBJECT, "roles": ["docs-admins"], **self.userinfo},
            "/jwks": {"keys": [KEY.as_dict(private=False), OctKey.import_key(SECRET, {"kid": "two"}).as_dict()]},
        }
        if path == "/token":
            return encoded(
                _filled({"access_token": "t", "token_type": "Bearer", "id_token": self._id_token(), **self.token})
            )
        return encoded(_filled(right[path]))

    def _id_token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.address, "sub": SUBJECT, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": self.nonce}
        body = encoded(_filled({**claims, **self.claims}))
        if self.algorithm == "none":  # the library warns
            return ".".join((_base64(encoded({"alg": "none"})), _base64(body), ""))
        shared = self.algorithm == "HS256"
        header = {"alg": self.algorithm, "kid": "two" if shared else "one"}
        return jws.serialize_compact(
            header, body, OctKey.import_key(SECRET) if shared else KEY, algorithms=[self.algorithm]
        )


def _base64(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _filled(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in value.items() if one is not None}


class _Handler(BaseHTTPRequestHandler):
    server: FaultyProvider

    def do_GET(self) -> None:  # the library's name
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        self.rfile.read(int(self.headers.get("content-length", "0")))
        if path == "/authorize":  # everybody is known here
            self.send_response(302)
            self.send_header("location", self.server.way_back(self.path))
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(self.server.answer(path))
            while self.server.endless == path:
                self.wfile.write(b" " * 65_536)
                self.server.sent += 65_536

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@contextmanager
def faulty_provider() -> Iterator[FaultyProvider]:
    """The provider while it answers."""
    provider = FaultyProvider()
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        provider.endless = ""
        provider.shutdown()
        provider.server_close()
