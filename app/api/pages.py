"""Serves the pages that people use in a browser: `/`, `/admin` and everything below it, and their files.

`make frontend` builds all of them from frontend/ into app/static/, which is part of the repository and of the package.
"""

from __future__ import annotations

import re
from html import escape
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

# everything is from this host, and no text can become a script
SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HASHED = re.compile(r"-[0-9A-Z]{8}\.js$")
HEADERS = {
    "content-security-policy": SECURITY,
    "cache-control": "no-cache",
    "referrer-policy": "same-origin",
}


class Pages:
    """The pages in the directory `built`."""

    def __init__(self, built: Path | None = None) -> None:
        self._built = built or Path(str(files("app"))) / "static"

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for path, handler in (("/", self.page), ("/admin", self.admin), ("/admin/{path:path}", self.admin)):
            app.add_api_route(path, handler, methods=["GET", "HEAD"], include_in_schema=False)
        app.mount("/static", GZipMiddleware(_Files(directory=self._built, check_dir=False)))

    async def page(self, request: Request) -> Response:
        """The page where readers ask and search."""
        return self._html(request, "page.html")

    async def admin(self, request: Request) -> Response:
        """The pages of operators. They contain no data: they fetch it with the admin key."""
        return self._html(request, "admin.html")

    def _html(self, request: Request, name: str) -> Response:
        # links in a page are relative to the root of the service, which may be behind a prefix
        root = escape(request.scope.get("root_path", "").rstrip("/"))
        text = (self._built / name).read_text("utf-8").replace('<base href="/">', f'<base href="{root}/">')
        return Response(text, headers=HEADERS, media_type="text/html")


class _Files(StaticFiles):
    """Files that pages of other hosts may load, too: the widget."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["access-control-allow-origin"] = "*"
        response.headers["cross-origin-resource-policy"] = "cross-origin"
        # the name of a part has its content's hash, so that a browser needn't ask again
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if HASHED.search(path) else "no-cache"
        return response
