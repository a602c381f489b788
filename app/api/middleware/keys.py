"""API keys: compares them in constant time, and limits the rate of wrong keys per address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import TypeVar

from pydantic import SecretStr
from starlette.requests import Request

from app.api.middleware.clients import network
from app.api.middleware.requestlog import info_of
from app.core.errors import RequestError

MAX_FAILURES = 10
SECONDS_PER_FAILURE = 6.0
"""An address may send MAX_FAILURES wrong keys at once, then one every SECONDS_PER_FAILURE seconds."""
MAX_TRACKED = 4096
Key = TypeVar("Key")
Value = TypeVar("Value")


class FailedAttempts:
    """Tracks wrong keys by address. A blocked address may still use keys that it used successfully before.

    So one attacker behind a proxy that isn't in DOCS_TRUSTED_PROXIES doesn't lock out the other clients behind it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unblocked_at: OrderedDict[str, float] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def record_failure(self, address: str) -> None:
        """Record a wrong key from this address."""
        now = self._clock()
        _remember(
            self._unblocked_at,
            address,
            min(
                max(self._unblocked_at.get(address, 0.0), now) + SECONDS_PER_FAILURE,
                now + MAX_FAILURES * SECONDS_PER_FAILURE,
            ),
        )

    def accept(self, address: str, digest: bytes) -> bool:
        """Whether to accept a valid key; False while its address is blocked and the key is new to it."""
        if (address, digest) not in self._accepted and self.blocked(address):
            return False
        _remember(self._accepted, (address, digest), None)
        return True

    def blocked(self, address: str) -> bool:
        """Whether this address has sent too many wrong keys."""
        return self._unblocked_at.get(address, 0.0) > self._clock() + (MAX_FAILURES - 1) * SECONDS_PER_FAILURE


def _remember(values: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    values[key] = value
    values.move_to_end(key)
    if len(values) > MAX_TRACKED:
        values.popitem(last=False)


class ApiKeys:
    """The keys that clients send as `Authorization: Bearer KEY`. Without any, all requests are accepted."""

    def __init__(self, keys: Sequence[SecretStr], failures: FailedAttempts | None = None, name: str = "") -> None:
        # digests, because compare_digest reveals the length of its arguments
        self._digests = tuple(sha256(key.get_secret_value().encode()).digest() for key in keys)
        self._failures = failures or FailedAttempts()
        self._name = name

    @property
    def required(self) -> bool:
        """True if a key is required."""
        return bool(self._digests)

    def accepts(self, request: Request) -> bool:
        """True if the request has a valid key, or none is required."""
        try:
            self.check(request)
        except RequestError:
            return False
        return True

    def key_number(self, request: Request) -> int:
        """The position of the request's key among the valid keys, counted from 1; 0 if it isn't one of them."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        # Starlette decodes headers as Latin-1, but keys are UTF-8
        digest = sha256(key.strip().encode("latin-1")).digest()
        matches = [compare_digest(digest, known) for known in self._digests]
        return matches.index(True) + 1 if any(matches) and scheme.lower() == "bearer" else 0

    def check(self, request: Request) -> None:
        """Raises `RequestError`: `invalid_api_key` without a valid key, `wrong_keys` after too many wrong ones."""
        if not self._digests:
            return
        if "authorization" not in request.headers:
            raise RequestError(
                "An API key is required: send the header 'Authorization: Bearer KEY'.", code="invalid_api_key"
            )
        address, number = network(request.scope), self.key_number(request)
        if number and self._failures.accept(address, self._digests[number - 1]):
            info_of(request).fields["key"] = f"{self._name}{number}"
            return
        if self._failures.blocked(address):
            raise RequestError(
                f"Too many wrong API keys came from your address. Try again in {SECONDS_PER_FAILURE:.0f} s.",
                code="wrong_keys",
            )
        self._failures.record_failure(address)
        raise RequestError("This API key is invalid.", code="invalid_api_key")
