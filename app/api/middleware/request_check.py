"""Who may come in at all: the host that a request names, the page that a browser sends it from, and the form of its body.

A browser sends requests wherever a page wants, also to a name that the page's owner lets point to this machine (DNS
rebinding); it tells the name in `Host` and the page in `Origin`, and asks beforehand for anything but simple bodies.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.middleware.requestlog import info_of
from app.core.errors import RequestError, quoted

PRIVATE = (".local", ".internal", ".home.arpa")


class AllowedHosts:
    """The names that this service answers to; addresses written as numbers can't be rebound and are always among them.

    Listening on loopback these are localhost and the machine's name, elsewhere also names that public DNS doesn't have
    (as of services in Compose and Kubernetes), and everywhere those in `allowed`: *.example.org is any name below
    example.org, * any name at all.
    """

    def __init__(self, allowed: Sequence[str], listening: str) -> None:
        self._exact = {name.lower() for name in allowed}
        self._suffixes = tuple(name[1:] for name in self._exact if name.startswith("*."))
        self._local = {"localhost", socket.gethostname().lower(), listening.lower()}
        self._loopback = listening == "localhost" or (_is_address(listening) and ip_address(listening).is_loopback)

    def known(self, name: str) -> bool:
        """Whether a request may name this host, which comes without a port."""
        if "*" in self._exact or self.allowed(name) or name in self._local or name.endswith(".localhost"):
            return True
        return _is_address(name) or (not self._loopback and ("." not in name or name.endswith(PRIVATE)))

    def allowed(self, name: str) -> bool:
        """Whether the setting names this host."""
        return name in self._exact or name.endswith(self._suffixes)


class RequestCheck:
    """ASGI middleware. Raises `RequestError` for hosts and pages that aren't known here, and for bodies that aren't JSON."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request if it may come in."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if name := self._unknown_host(headers):
                info_of(Request(scope)).fields["host"] = name
                raise RequestError(
                    f"This service isn't known as {quoted(name)}. If it should be, add that name to DOCS_ALLOWED_HOSTS.",
                    code="host_refused",
                )
            if scope["method"] not in ("GET", "HEAD", "OPTIONS") or scope["path"].endswith("/mcp"):
                self._check_origin(headers)
            if scope["method"] == "POST":
                _check_body(headers)
        await self._app(scope, receive, send)

    def _unknown_host(self, headers: Headers) -> str:
        """The host that isn't known here; empty where it is, or where there is none, as browsers always send one."""
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            raise RequestError("There is more than one header 'Host'.")
        name = _name(hosts[0]) if hosts else ""
        return name if name and not self._hosts.known(name) else ""

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None:  # no browser
            return
        page = origin.lower().partition("://")[2]
        if not page or (_plain(page) != _plain(headers.get("host", "")) and not self._hosts.allowed(_name(page))):
            raise RequestError(
                f"Pages of {quoted(origin)} may not ask here. If they should, add their host to DOCS_ALLOWED_HOSTS.",
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
    """Host and port, without a port that goes without saying."""
    return host.lower().removesuffix(":80").removesuffix(":443")


def _name(host: str) -> str:
    """The name in a host with or without a port; empty where there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # as of "[::"
        return host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
