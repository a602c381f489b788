"""Tells the address of a client, also behind a trusted proxy, in full or shortened for privacy."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any, Literal, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.core.settings import is_loopback

_PROXY = "docs_assistant.proxy"
_PREFIX = re.compile(r"(/(?!\.)[\w.~-]+){1,8}", re.ASCII)


class ForwardedHeaders(ProxyHeadersMiddleware):
    """uvicorn's middleware for X-Forwarded-For and -Proto of trusted proxies, which takes X-Forwarded-Prefix too.

    A client that a proxy on another machine names can't be this machine, whose limits are wider: the proxy's address stays.
    """

    def __init__(self, app: ASGIApp, trusted_hosts: list[str]) -> None:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            proxy, client = scope.pop(_PROXY, None), scope.get("client")
            if proxy and client and is_loopback(client[0]) and not is_loopback(proxy[0]):
                scope["client"] = proxy
            await app(scope, receive, send)

        super().__init__(cast("Any", serve), trusted_hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request below the prefix."""
        client = scope.get("client")
        if scope["type"] == "http" and client and client[0] in self.trusted_hosts:
            prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if _PREFIX.fullmatch(prefix):
                scope |= {"root_path": prefix, "path": prefix + scope["path"]}
        scope[_PROXY] = client
        await super().__call__(scope, receive, send)


def route_path(scope: Scope) -> str:
    """The path without the prefix of a proxy, as routes have it."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


AddressDetail = Literal["full", "cut", "none"]


def logged_address(scope: Scope, how: AddressDetail) -> str:
    """The address of the client for the log: in full, cut to its network (/24 or /48), or empty."""
    address = _address(scope)
    return "" if how == "none" or not address else address if how == "full" else _cut(address, 24, 48)


def network(scope: Scope) -> str:
    """The part of the address that a client can't easily change: a whole IPv4 address, the /64 of an IPv6 address."""
    return _cut(_address(scope), 32, 64)


def is_own_machine(scope: Scope) -> bool:
    """True if the request comes from this machine, from where a proxy that isn't trusted may send those of all clients."""
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
