"""Limits the rate of wrong keys per address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

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
