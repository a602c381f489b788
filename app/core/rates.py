"""Rates as operators write them, such as "5/second; 60/minute"."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limits import RateLimitItem

EXAMPLE = '"60/minute" or "5/second; 1000/day"'


@lru_cache(maxsize=256)
def parse_rates(text: str) -> tuple[RateLimitItem, ...]:
    """The rates in a text, the shortest window first; none in an empty text. Raises `ValueError` for any other text."""
    from limits import parse_many  # takes .1 s

    if not text.strip():
        return ()
    try:
        rates = parse_many(text.strip())
    except ValueError as error:
        raise ValueError(f"it must be a rate, such as {EXAMPLE}.") from error
    if not all(rate.amount for rate in rates):
        raise ValueError("a rate must allow at least 1 request. To revoke a key, remove it.")
    return tuple(sorted(rates, key=lambda rate: rate.get_expiry()))
