"""Who may ask: keys compared in constant time, and who tries too many of them waits."""

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
"""An address may show this many wrong keys at once, and then one in so many seconds."""
MAX_TRACKED = 4096
Key = TypeVar("Key")
Value = TypeVar("Value")


class FailedAttempts:
    """Which addresses showed too many wrong keys. ApiKeys that an address showed rightly before stay good for it.

    So guessing from behind a proxy that isn't in DOCS_TRUSTED_PROXIES doesn't shut the others behind it out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unblocked_at: OrderedDict[str, float] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def record_failure(self, address: str) -> None:
        """A wrong key came from this address."""
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
        """Whether a right key counts: False while its address must wait."""
        if (address, digest) not in self._accepted and self.blocked(address):
            return False
        _remember(self._accepted, (address, digest), None)
        return True

    def blocked(self, address: str) -> bool:
        """Whether this address showed too many."""
        return self._unblocked_at.get(address, 0.0) > self._clock() + (MAX_FAILURES - 1) * SECONDS_PER_FAILURE


def _remember(values: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    values[key] = value
    values.move_to_end(key)
    if len(values) > MAX_TRACKED:
        values.popitem(last=False)


class ApiKeys:
    """The keys that clients may show as `Authorization: Bearer KEY`; none lets everybody in."""

    def __init__(self, keys: Sequence[SecretStr], failures: FailedAttempts | None = None, name: str = "") -> None:
        # digests, since compare_digest tells the length of what it compares
        self._digests = tuple(sha256(key.get_secret_value().encode()).digest() for key in keys)
        self._failures = failures or FailedAttempts()
        self._name = name

    @property
    def required(self) -> bool:
        """True when a key must be shown."""
        return bool(self._digests)

    def accepts(self, request: Request) -> bool:
        """True when the request shows a right key, or none is needed."""
        try:
            self.check(request)
        except RequestError:
            return False
        return True

    def key_number(self, request: Request) -> int:
        """Which of the keys the request shows, counted from 1; 0 for none of them."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        # headers come decoded as Latin-1, keys are UTF-8
        shown = sha256(key.strip().encode("latin-1")).digest()
        found = [compare_digest(shown, digest) for digest in self._digests]
        return found.index(True) + 1 if any(found) and scheme.lower() == "bearer" else 0

    def check(self, request: Request) -> None:
        """Raises `RequestError`, `invalid_api_key` without a right key or `wrong_keys` after too many wrong ones."""
        if not self._digests:
            return
        if "authorization" not in request.headers:
            raise RequestError(
                "An API key is needed: send the header 'Authorization: Bearer KEY'.", code="invalid_api_key"
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
        raise RequestError("This API key isn't known here.", code="invalid_api_key")
