"""Checks Host, Origin and Content-Type of requests, against DNS rebinding and cross-site requests.

A page can make a browser send requests to any host, including a name of the attacker that resolves to this machine. The
browser sends that name in `Host` and the page in `Origin`, and asks for permission (CORS) unless the body is simple.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.middleware.cors import AllowedOrigins
from app.api.middleware.requestlog import info_of
from app.core.errors import RequestError, quoted
from app.core.settings import is_loopback

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
        """Whether a request may name this host (without a port)."""
        if "*" in self._exact or self.allowed(name) or name in self._local or name.endswith(".localhost"):
            return True
        return _is_address(name) or (not self._loopback and ("." not in name or name.endswith(PRIVATE)))

    def allowed(self, name: str) -> bool:
        """Whether DOCS_ALLOWED_HOSTS lists this host."""
        return name in self._exact or name.endswith(self._suffixes)


class RequestCheck:
    """ASGI middleware: raises `RequestError` for an unknown host, a foreign origin, or a body that isn't JSON."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts, origins: AllowedOrigins) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then serve it."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if name := self._unknown_host(headers):
                info_of(Request(scope)).fields["host"] = name
                raise RequestError(
                    f"This service isn't known as {quoted(name)}. To allow it, add that name to DOCS_ALLOWED_HOSTS.",
                    code="host_refused",
                )
            if scope["method"] not in ("GET", "HEAD") or scope["path"].endswith("/mcp"):
                self._check_origin(scope, headers)
            if scope["method"] == "POST":
                _check_body(headers)
        await self._app(scope, receive, send)

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
