"""What the sender of a request may do: its role, and the assistants, collections and limits of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["reader", "widget", "admin"]
"""A `widget` key is public, because it stands in web pages, and asks and searches only; an `admin` may do everything."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a request. `key` is the name of its key, as logs show it; empty without a key.

    `owner` is who owns what the request stores: it stays the same while keys are added and removed, and is empty without
    a key. Empty `assistants` or `collections`, an empty `rate` and a `concurrency` of 0 mean that the key sets no limit.
    """

    role: Role = "reader"
    key: str = ""
    owner: str = ""
    assistants: frozenset[str] = frozenset()
    collections: tuple[str, ...] = ()
    rate: str = ""
    concurrency: int = 0
