"""The address that a request comes from, as far as somebody may know it."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Literal

from starlette.types import Scope

AddressDetail = Literal["full", "cut", "none"]


def logged_address(scope: Scope, how: AddressDetail) -> str:
    """The client's address for the log: whole, cut to a network (/24, /48), or empty."""
    address = _address(scope)
    return "" if how == "none" or not address else address if how == "full" else _cut(address, 24, 48)


def network(scope: Scope) -> str:
    """What one client can't easily change of its address: all of IPv4, a /64 of IPv6."""
    return _cut(_address(scope), 32, 64)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


@lru_cache(maxsize=1024)
def _cut(address: str, four: int, six: int) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:  # what a proxy wrote into its header, or the client of a test
        return address[:40]
    bits = four if parsed.version == 4 else six
    return str(ip_network(f"{parsed}/{bits}", strict=False))
