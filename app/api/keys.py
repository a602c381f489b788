"""Who may ask: keys compared in constant time."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest

from pydantic import SecretStr
from starlette.requests import Request

from app.core.errors import RequestError


class Keys:
    """The keys that clients may show as `Authorization: Bearer KEY`; none lets everybody in."""

    def __init__(self, keys: Sequence[SecretStr]) -> None:
        # digests, since compare_digest tells the length of what it compares
        self._digests = tuple(sha256(key.get_secret_value().encode()).digest() for key in keys)

    @property
    def required(self) -> bool:
        """True when a key must be shown."""
        return bool(self._digests)

    def fit(self, request: Request) -> bool:
        """True when the request shows a right key, or none is needed."""
        return not self._digests or self.shown(request) > 0

    def shown(self, request: Request) -> int:
        """Which of the keys the request shows, counted from 1; 0 for none of them."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        # headers come decoded as Latin-1, keys are UTF-8
        shown = sha256(key.strip().encode("latin-1")).digest()
        found = [compare_digest(shown, digest) for digest in self._digests]
        return found.index(True) + 1 if any(found) and scheme.lower() == "bearer" else 0

    def check(self, request: Request) -> None:
        """Raises `RequestError` with the code `invalid_api_key` when no right key is shown."""
        if self.fit(request):
            return
        if "authorization" in request.headers:
            raise RequestError("This API key isn't known here.", code="invalid_api_key")
        raise RequestError("An API key is needed: send the header 'Authorization: Bearer KEY'.", code="invalid_api_key")
