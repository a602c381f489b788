"""Keeps the crawler from addresses that it may not connect to. The connection itself checks them, so that no second DNS answer gets around it.

Requests go straight to checked addresses, or by the proxies of the environment.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from app.core.errors import CrawlError, SettingsError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_ISATAP = 0x00005EFE


class AddressRefused(CrawlError):
    """A host resolves to an address that the crawler must not reach."""


async def resolve(name: str, port: int) -> Sequence[str]:
    """The addresses of a name by the system's resolver, which also reads 127.1, 2130706433 and 0x7f000001."""
    places = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(place[0]) for *_, place in places))


@dataclass
class Guard:
    """Resolves hosts to the addresses that the crawler may connect to.

    A host that the operator named may be anywhere but on link-local and unspecified addresses; one that was
    public at first must stay so. Every other host must be public. `allow` (`hosts` like `*.example.org`, networks)
    widens both.
    """

    allow: Sequence[str] = ()
    resolve: Resolve = resolve
    _named: set[str] = field(default_factory=set)
    _public: set[str] = field(default_factory=set)
    hosts: tuple[str, ...] = field(init=False)
    _networks: tuple[Network, ...] = field(init=False)

    def __post_init__(self) -> None:
        entries = [(entry, _network(entry)) for entry in self.allow]
        self._networks = tuple(network for _, network in entries if network is not None)
        self.hosts = tuple(entry.lower() for entry, network in entries if network is None)

    def trust(self, name: str, port: int) -> None:
        """The operator named this host and port."""
        self._named.add(f"{name.lower()}:{port}")

    async def addresses(self, name: str, port: int) -> list[str]:
        """The permitted addresses of the host. Raises `AddressRefused` when there are none, OSError for an unknown name."""
        literal = literal_address(name)
        addresses = [literal] if literal else [_address(text) for text in await self.resolve(name, port)]
        good = [address for address in addresses if self._permits(name, port, address)]
        if not good:
            shown = ", ".join(sorted({str(address) for address in addresses})) or "no address"
            raise AddressRefused(
                f"{name} leads to {shown}, which is not a public address: "
                "add the host or its network to DOCS_CRAWL_ALLOW if the crawler may go there"
            )
        if all(is_public(address) for address in addresses):
            self._public.add(f"{name.lower()}:{port}")
        return [str(address) for address in good]

    def check_unresolved(self, name: str, port: int) -> None:
        """Check a host that is written as an address, which nothing here resolves. Raises `AddressRefused`."""
        literal = literal_address(name)
        if literal is not None and not self._permits(name, port, literal):
            raise AddressRefused(
                f"{name} is not a public address: add it to DOCS_CRAWL_ALLOW if the crawler may go there"
            )

    def _permits(self, name: str, port: int, address: Address) -> bool:
        if is_public(address) or any(address in network for network in self._networks):
            return True
        host = name.lower()
        place = f"{host}:{port}"
        if any(fnmatchcase(host, pattern) or fnmatchcase(place, pattern) for pattern in self.hosts):
            return True
        if place not in self._named or place in self._public:
            return False
        # addresses without documentation, such as the metadata of clouds
        never = address.is_link_local or address.is_unspecified or address.is_multicast
        return literal_address(name) is not None or not never


def literal_address(name: str) -> Address | None:
    """The address that a host part is, in any form that a system takes for one; None for a name."""
    try:
        return _address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except OSError:
        return None


def is_public(address: Address) -> bool:
    """True for an address of the public internet, also by the IPv4 address embedded in it.

    Of IPv6 only 2000::/3 is (RFC 4291), and what NAT64 makes of public IPv4 addresses. So no translated, compatible,
    local or reserved form has to be known.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    if address in _NAT64:
        return is_public(_last(address))
    inner = [address.sixtofour, *(address.teredo or ())]
    if (int(address) >> 32) & 0xFCFFFFFF == _ISATAP:
        inner.append(_last(address))
    return (
        address in _UNICAST
        and address.is_global
        and all(is_public(address) for address in inner if address is not None)
    )


def _last(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


def _address(text: str) -> Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError as error:
        if "/" in entry:
            raise SettingsError(
                f"DOCS_CRAWL_ALLOW has {entry!r}: give hosts (docs.example.org, *.example.org) "
                "or networks (10.0.0.0/8), without scheme and path"
            ) from error
        return None


class _Resolver(AbstractResolver):
    """Resolves a name once, lets the guard check the addresses, and gives those that may be connected to.

    TLS and the Host header go on with the name, because they come from the request and not from here.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        try:
            addresses = await self._guard.addresses(host, port)
        except (OSError, UnicodeError) as error:
            raise OSError(None, f"the name {host} is not known ({error})") from error
        return [_place(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing to let go of."""


def _place(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


def guarded(guard: Guard) -> aiohttp.BaseConnector:
    """Connections to addresses that the guard has checked; those that are written as numbers are checked by `Routes`."""
    return aiohttp.TCPConnector(resolver=_Resolver(guard), use_dns_cache=False, limit=0)


class Routes:
    """The ways of requests: straight, or by the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY mean for them.

    A proxy resolves names itself, so only addresses written as numbers can be checked there.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._proxies = {
            scheme: _proxy(address)
            for scheme, address in urllib.request.getproxies().items()
            if scheme in ("http", "https", "all") and address
        }

    def proxy(self, url: URL) -> URL | None:
        """The proxy for a request, after the check of its address. Raises `AddressRefused`."""
        self._guard.check_unresolved(url.raw_host or "", url.port or 0)
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        return None if proxy is None or urllib.request.proxy_bypass(url.raw_host or "") else proxy


def _proxy(address: str) -> URL:
    with suppress(ValueError):
        proxy = URL(address if "://" in address else f"http://{address}")
        if proxy.scheme in ("http", "https") and proxy.host:
            return proxy
    raise SettingsError(
        f"The proxy {address} of the environment can't be used: it must be one of HTTP, as http://host:8080"
    )
