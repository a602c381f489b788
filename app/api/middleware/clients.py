"""The address of the client, in full or shortened for privacy."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Literal

from starlette.types import Scope

from app.core.settings import is_loopback

AddressDetail = Literal["full", "cut", "none"]


def logged_address(scope: Scope, how: AddressDetail) -> str:
    """The address of the client for the log: in full, cut to its network (/24 or /48), or empty."""
    address = _address(scope)
    return "" if how == "none" or not address else address if how == "full" else _cut(address, 24, 48)


def network(scope: Scope) -> str:
    """The part of the address that a client can't easily change: a whole IPv4 address, the /64 of an IPv6 address."""
    return _cut(_address(scope), 32, 64)


def is_own_machine(scope: Scope) -> bool:
    """Whether the request comes from this machine, from where a proxy that isn't trusted may send those of all clients."""
    return not (address := _address(scope)) or is_loopback(address)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    # a socket for IPv6 and IPv4 writes IPv4 addresses so, and all of them would be one network of IPv6
    return str(client[0]).removeprefix("::ffff:") if client else ""


@lru_cache(maxsize=1024)
def _cut(address: str, four: int, six: int) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:  # a proxy's header, or the client of a test
        return address[:40]
    bits = four if parsed.version == 4 else six
    return str(ip_network(f"{parsed}/{bits}", strict=False))
