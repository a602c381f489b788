"""Checks Host, Origin and Content-Type of requests, against DNS rebinding and cross-site requests, and lets pages of allowed origins ask."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import RequestError, quoted
from app.core.settings import is_loopback
from app.http.door import info_of, route_path

PRIVATE = (".local", ".internal", ".home.arpa")


class AllowedHosts:
    """The host names that this service accepts. IP addresses are always accepted, because they can't be rebound.

    A service that listens on loopback accepts localhost and the name of the machine; any other also accepts names outside
    public DNS (services in Compose and Kubernetes). Names in `allowed` are accepted everywhere: *.example.org is any
    name below example.org, * is any name.
    """

    def __init__(self, allowed: Sequence[str], listening: str) -> None:
        self._exact = {name.lower() for name in allowed}
        self._suffixes = tuple(name[1:] for name in self._exact if name.startswith("*."))
        self._local = {"localhost", socket.gethostname().lower(), listening.lower()}
        self._loopback = is_loopback(listening)

    def known(self, name: str) -> bool:
        """True if a request may name this host (without a port)."""
        if "*" in self._exact or self.allowed(name) or name in self._local or name.endswith(".localhost"):
            return True
        return _is_address(name) or (not self._loopback and ("." not in name or name.endswith(PRIVATE)))

    def allowed(self, name: str) -> bool:
        """True if DOCS_ALLOWED_HOSTS lists this host."""
        return name in self._exact or name.endswith(self._suffixes)


class RequestCheck:
    """Check of the door: raises `RequestError` for an unknown host, a foreign origin, or a body that isn't JSON."""

    def __init__(self, hosts: AllowedHosts, origins: AllowedOrigins) -> None:
        self._hosts = hosts
        self._origins = origins

    def __call__(self, request: Request) -> None:
        """Check the request."""
        headers = request.headers
        if name := self._unknown_host(headers):
            info_of(request).fields["host"] = name
            raise RequestError(
                f"This service isn't known as {quoted(name)}. To allow it, add that name to DOCS_ALLOWED_HOSTS.",
                code="host_refused",
            )
        if request.method not in ("GET", "HEAD") or request.scope["path"].endswith("/mcp"):
            self._check_origin(request.scope, headers)
        if request.method == "POST":
            _check_body(headers)

    def _unknown_host(self, headers: Headers) -> str:
        """The host of the request if it is unknown, else an empty string. Browsers always send a host; others may not."""
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            raise RequestError("There is more than one header 'Host'.")
        name = _name(hosts[0]) if hosts else ""
        return name if name and not self._hosts.known(name) else ""

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or self._origins.allowed(scope, origin):  # browsers always send it
            return
        page = origin.lower().partition("://")[2]
        if not page or (_plain(page) != _plain(headers.get("host", "")) and not self._hosts.allowed(_name(page))):
            raise RequestError(
                f"Pages of {quoted(origin)} may not send this request. For the widget, add the origin to DOCS_ORIGINS; if it is "
                "another name of this service, add its host to DOCS_ALLOWED_HOSTS.",
                code="origin_refused",
            )


def _check_body(headers: Headers) -> None:
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        given = f"not {quoted(kind)}" if kind else "and its type is missing"
        raise RequestError(
            f"The body must be JSON, {given}: send the header 'Content-Type: application/json'.", code="not_json"
        )


def _plain(host: str) -> str:
    """Host and port, without a default port."""
    return host.lower().removesuffix(":80").removesuffix(":443")


def _name(host: str) -> str:
    """The name in a host with or without a port; empty if there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # for example "[::"
        return host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


SHARED = ("chat/completions", "search", "models", "interface", "answers", "passages", "conversations")
"""Routes below /v1/ that pages of other origins may use: what readers need, and nothing for operators."""
HOURS = 2
"""Browsers ask for permission again after this time; Chromium allows no more."""


class AllowedOrigins:
    """The origins whose pages may use the routes in `SHARED`: those of DOCS_ORIGINS, and those that keys have now."""

    def __init__(self, allowed: Iterable[str], of_keys: Callable[[], Collection[str]] = frozenset) -> None:
        self._allowed = frozenset(allowed)
        self._of_keys = of_keys

    def allowed(self, scope: Scope, origin: str) -> bool:
        """True if a page of this origin may send this request."""
        return is_shared(scope) and self.known(origin)

    def known(self, origin: str) -> bool:
        """True if pages of this origin may ask, where the route is a shared one."""
        return is_among(origin, self._allowed) or is_among(origin, self._of_keys())


def is_among(origin: str, allowed: Collection[str]) -> bool:
    """True if one of the allowed origins is this one; `https://*.example.org` is any name below example.org."""
    return origin in allowed or any(
        origin.startswith(scheme) and origin.endswith(name) and "/" not in origin[len(scheme) :]
        for scheme, name in (one.split("*") for one in allowed if "://*." in one)
    )


class Cors(CORSMiddleware):
    """ASGI middleware outside of the request log, so that browsers let pages read its errors, too."""

    def __init__(self, app: ASGIApp, origins: AllowedOrigins) -> None:
        super().__init__(
            app,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("Authorization", "Cache-Control", "Content-Type", "X-Request-ID", "X-Conversation-ID"),
            expose_headers=("Age", "AI-Disclosure", "Retry-After", "X-Request-ID"),
            max_age=HOURS * 3600,
            # an allowed page on the internet may ask a service in the network of its reader
            allow_private_network=True,
        )
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request. A preflight that isn't allowed goes on to the checks, whose error says what to do."""
        origin = Headers(scope=scope).get("origin", "") if scope["type"] == "http" else ""
        # a response to GET may be kept, and must say that it depends on the origin; each event of a stream would cost a call
        applies = origin or scope.get("method") == "GET"
        if scope.get("method") == "OPTIONS":
            applies = self._origins.known(origin)
        if applies and scope["type"] == "http" and is_shared(scope):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        """True if pages of this origin may send a request."""
        return self._origins.known(origin)


def is_shared(scope: Scope) -> bool:
    """True if the request is for a route in `SHARED`."""
    route = route_path(scope)
    return any(f"{route}/".startswith(f"/v1/{shared}/") for shared in SHARED)
