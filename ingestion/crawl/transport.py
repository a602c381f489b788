"""Sends requests: straight, to addresses that the guard has checked, or by the proxies of the environment."""

from __future__ import annotations

import select
import ssl
import urllib.request
from collections.abc import Coroutine, Iterable
from typing import Any

import httpcore
import httpx

from app.core.errors import SettingsError
from ingestion.crawl.guard import Guard
from ingestion.urls import origin

_PORTS = {"http": 80, "https": 443}


class _Stream(httpcore.AsyncNetworkStream):
    """A connection that knows its socket. For each request, the pool checks twice whether idle connections are closed,
    and anyio's own check looks up both addresses each time.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream, socket: Any) -> None:
        self._stream = stream
        self._socket = socket
        self._poll = select.poll() if hasattr(select, "poll") else None  # not on every system
        if self._poll is not None:
            self._poll.register(socket, select.POLLIN)

    def read(self, max_bytes: int, timeout: float | None = None) -> Coroutine[Any, Any, bytes]:
        """See httpcore."""
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """See httpcore."""
        return self._stream.write(buffer, timeout)

    def aclose(self) -> Coroutine[Any, Any, None]:
        """See httpcore."""
        return self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """See httpcore."""
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._socket)

    def get_extra_info(self, info: str) -> Any:
        """See httpcore."""
        if info == "is_readable" and self._poll is not None:
            return self._socket.fileno() < 0 or bool(self._poll.poll(0))
        return self._stream.get_extra_info(info)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name once, lets the guard check the addresses, and connects to one of them.

    TLS and the Host header go on with the name, because they come from the request and not from here.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(  # the signature is httpcore's
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first checked address that takes one."""
        try:
            addresses = await self._guard.addresses(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} is not known ({error})") from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
                return _Stream(stream, stream.get_extra_info("socket"))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Never: no page is behind a socket file."""
        raise httpcore.ConnectError(f"{path} is a file")

    async def sleep(self, seconds: float) -> None:
        """See httpcore."""
        await self._backend.sleep(seconds)


class _DirectTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, with its errors and its streams, on connections of ours."""

    def __init__(self, guard: Guard, context: ssl.SSLContext) -> None:
        super().__init__(verify=context)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=64,
            network_backend=GuardedBackend(guard),
        )


def _proxied(address: str, context: ssl.SSLContext) -> httpx.AsyncHTTPTransport:
    try:
        return httpx.AsyncHTTPTransport(verify=context, proxy=address if "://" in address else f"http://{address}")
    except (ValueError, httpx.InvalidURL, ImportError) as error:  # SOCKS needs a package of its own
        raise SettingsError(f"The proxy {address} of the environment can't be used: {error}") from error


class CrawlTransport(httpx.AsyncBaseTransport):
    """Sends each request straight, or by the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY mean for it.

    A proxy resolves names itself, so only addresses written as numbers can be checked there.
    """

    def __init__(self, guard: Guard, context: ssl.SSLContext | None = None) -> None:
        context = context or httpx.create_ssl_context()  # reading the authorities takes longer than all else here
        self._guard = guard
        self._sites: dict[str, CrawlTransport] = {}
        self._direct = _DirectTransport(guard, context)
        self._proxies = {
            scheme: _proxied(address, context)
            for scheme, address in urllib.request.getproxies().items()
            if scheme in ("http", "https", "all") and address
        }

    def connect_with(self, context: ssl.SSLContext, site: str) -> None:
        """Use this certificate and these authorities for the site's scheme, host and port, and for no other."""
        self._sites[origin(str(httpx.URL(site)))] = CrawlTransport(self._guard, context)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response. Raises `AddressRefused` and httpx's errors."""
        url = request.url
        if own := self._sites.get(origin(str(url))) if self._sites else None:
            return await own.handle_async_request(request)
        proxy = self._proxies.get(url.scheme) or self._proxies.get("all")
        if proxy is None or urllib.request.proxy_bypass(url.host):
            return await self._direct.handle_async_request(request)
        self._guard.check_unresolved(url.host, url.port or _PORTS.get(url.scheme, 0))
        return await proxy.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self._direct, *self._proxies.values(), *self._sites.values()):
            await transport.aclose()
