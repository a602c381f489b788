"""What a proxy in front of the service knows of a request: the client's address and scheme, and the path that it removed."""

from __future__ import annotations

import re
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Scope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_PREFIX = re.compile(r"(/(?!\.)[\w.~-]+){1,8}", re.ASCII)


class ForwardedHeaders(ProxyHeadersMiddleware):
    """uvicorn's middleware for X-Forwarded-For and -Proto of trusted proxies, which takes X-Forwarded-Prefix too."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request below the prefix."""
        client = scope.get("client")
        if scope["type"] == "http" and client and client[0] in self.trusted_hosts:
            prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if _PREFIX.fullmatch(prefix):
                scope |= {"root_path": prefix, "path": prefix + scope["path"]}
        await super().__call__(scope, receive, send)


def route_path(scope: Scope) -> str:
    """The path without the prefix of a proxy, as routes have it."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))
