"""Pages for people: where readers ask, the admin pages, and our documentation under /docs/."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from app.http.bodies import preferred_language, prefers
from app.http.keys import Keys
from app.routes.interface import Branding
from app.routes.routers import unlisted_router

# everything is from this host, and no text can become a script
SECURITY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'self'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
TITLE = "Docs Assistant"  # in the built pages
HASHED = re.compile(r"-[0-9A-Z]{8}\.js$")
HEADERS = {
    "content-security-policy": SECURITY,
    "cache-control": "no-cache",
    "referrer-policy": "same-origin",
}


class Pages:
    """The pages in the directory `built`, with the name of the documentation. `keys` say whose sign-in is to be renewed first."""

    def __init__(self, branding: Branding, keys: Keys, built: Path | None = None) -> None:
        self._branding, self._keys = branding, keys
        self._built = built or Path(str(files("app"))) / "static"

    def router(self) -> APIRouter:
        """The routes of the pages and of the files that they load."""
        brand = {"/brand.css": self._branding.style, "/brand/icon": self._branding.icon}
        router = unlisted_router({"/": self.page, "/admin": self.admin, "/admin/{path:path}": self.admin, **brand})
        router.mount("/static", GZipMiddleware(_Files(directory=self._built, check_dir=False)))
        return router

    async def page(self, request: Request) -> Response:
        """The page where readers ask and search."""
        page = await self._html(request, "page.html")
        if "shared" in request.query_params:
            page.headers["x-robots-tag"] = "noindex"
        return page

    async def admin(self, request: Request) -> Response:
        """The pages of operators. They contain no data: they fetch it with the admin key."""
        return await self._html(request, "admin.html")

    async def _html(self, request: Request, name: str) -> Response:
        if (people := self._keys.people) and (renewal := people.renewal(request)):
            return RedirectResponse(renewal, 303, {"cache-control": "no-store"})
        title = escape((await self._branding.brand()).name)
        # links in a page are relative to the root of the service, which may be behind a prefix
        root = escape(request.scope.get("root_path", "").rstrip("/"))
        text = (self._built / name).read_text("utf-8").replace('<base href="/">', f'<base href="{root}/">')
        return Response(text.replace(f">{TITLE}<", f">{title}<"), headers=HEADERS, media_type="text/html")


class _Files(StaticFiles):
    """Files that pages of other hosts may load, too: the widget."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["access-control-allow-origin"] = "*"
        response.headers["cross-origin-resource-policy"] = "cross-origin"
        # the name of a part has its content's hash, so that a browser needn't ask again
        response.headers["cache-control"] = "public, max-age=31536000, immutable" if HASHED.search(path) else "no-cache"
        return response


HOME = "index"
SITEMAP = "sitemap.xml"
# pages contain small inline scripts and styles; everything else comes from this host
SITE_SECURITY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'self'; form-action 'none'"
)
NOT_BUILT = "The documentation isn't built yet: `make docs` builds it. Until then its pages are Markdown:\n\n"
LONGEST = 200  # characters of a path: file systems refuse longer names
_PAGE = re.compile(r"([a-z]{2,3})/([\w-]*)(\.md|\.html|(?<=[\w-])/)?", re.ASCII)
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


def find_docs() -> Path:
    """The directory with the Markdown of the documentation: inside the installed package, or beside it in a checkout."""
    package = Path(str(files("app")))
    return package / "docs" if (package / "docs").is_dir() else package.parent / "docs"


class Site:
    """Serves the pages of the directory `docs` (`<language>/<name>.md`) as HTML from `built`, or as Markdown."""

    def __init__(self, docs: Path, *, default_language: str, built: Path | None = None) -> None:
        self._docs = docs
        self._built = built or Path(str(files("app"))) / "site"
        self._files = StaticFiles(directory=self._built, html=True, check_dir=False)
        self._default_language = default_language

    def router(self) -> APIRouter:
        """The routes below /docs."""
        return unlisted_router({
            "/docs": _with_slash, f"/docs/{SITEMAP}": self.sitemap, "/docs/{path:path}": self.serve,
        })  # fmt: skip

    async def sitemap(self, request: Request) -> Response:
        """The sitemap, with absolute addresses based on the host of the request."""
        return Response(sitemap(self._pages(), base_url(request)), media_type="application/xml")

    async def serve(self, request: Request) -> Response:
        """The page or file at this path below /docs/."""
        path = request.path_params["path"]
        if not path:
            return self._home(request)
        if len(path) > LONGEST:
            return self._missing(request, "")
        found = _PAGE.fullmatch(path)
        if found and (source := self._docs / found[1] / f"{found[2] or HOME}.md").is_file():
            return self._page(request, source, found[3] or "", named=found[2])
        try:
            return await self._files.get_response(path, request.scope)
        except HTTPException:
            return self._missing(request, path.partition("/")[0])

    def _languages(self) -> list[str]:
        return sorted({page.parent.name for page in self._pages()})

    def _pages(self) -> list[Path]:
        return sorted(self._docs.glob("[a-z][a-z]/[!._]*.md"))  # docs/decisions is for those who change the program

    def _home(self, request: Request) -> Response:
        languages = self._languages()
        if not languages or not (self._built / languages[0]).is_dir():
            pages = "".join(f"{base_url(request)}{_path(page)}\n" for page in self._pages())
            return Response(NOT_BUILT + pages, media_type="text/plain")
        preferred = self._preferred(request, languages)
        return RedirectResponse(f"{preferred}/", 307, {"vary": "Accept-Language", "cache-control": "no-cache"})

    def _preferred(self, request: Request, languages: list[str]) -> str:
        accepted = preferred_language(request.headers.get("accept-language", ""), languages)
        return accepted or (
            self._default_language if self._default_language in languages or not languages else languages[0]
        )

    def _page(self, request: Request, source: Path, suffix: str, *, named: str) -> Response:
        if suffix in {".html", "/"} or (named == HOME and not suffix):
            query = request.url.query and f"?{request.url.query}"  # it has the words that the search highlights
            folder = "../" if suffix == "/" else "./"
            return RedirectResponse(f"{folder}{'' if named == HOME else named}{query}", 308)
        html = self._built / source.parent.name / f"{source.stem}.html"
        markdown = prefers("text/markdown", request.headers.get("accept", "")) or not html.is_file()
        if suffix or markdown:
            headers = {"content-type": "text/markdown; charset=utf-8", "content-location": f"{source.stem}.md"}
        else:
            headers = {"content-security-policy": SITE_SECURITY}
        file = source if suffix or markdown else html
        response = self._files.file_response(file, file.stat(), request.scope)
        response.headers.update({**headers, "vary": "Accept", "cache-control": "no-cache"})
        return response

    def _missing(self, request: Request, language: str) -> Response:
        languages = self._languages()
        if language not in languages:
            language = self._preferred(request, languages)
        page = self._built / language / "404.html"
        if not page.is_file():
            return Response("There is no such page: see /docs/.\n", 404, media_type="text/plain")
        home = f"{request.scope.get('root_path', '')}/docs/{language}/"
        text = page.read_text("utf-8").replace('href="/"', f'href="{escape(home)}"')
        return Response(text, 404, {"content-security-policy": SITE_SECURITY}, "text/html")


async def _with_slash(_: Request) -> Response:
    return RedirectResponse("docs/", 307)


def _path(page: Path) -> str:
    """The path of the page below /docs/. The path of a home page ends in a slash."""
    return f"{page.parent.name}/{'' if page.stem == HOME else page.stem}"


def sitemap(pages: Iterable[Path], base: str) -> str:
    """A sitemap (sitemaps.org) of the pages with their dates and, as Google's extension, their other languages."""
    by_name: dict[str, list[Path]] = {}
    for page in pages:
        by_name.setdefault(page.name, []).append(page)
    entries = []
    for others in by_name.values():
        alternates = "".join(
            f'\n    <xhtml:link rel="alternate" hreflang="{other.parent.name}" href="{escape(base + _path(other))}"/>'
            for other in others
        )
        for page in others:
            modified = datetime.fromtimestamp(int(page.stat().st_mtime), UTC).isoformat()
            place = f"<loc>{escape(base + _path(page))}</loc>\n    <lastmod>{modified}</lastmod>"
            entries.append(f"  <url>\n    {place}{alternates}\n  </url>\n")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">\n'
        f"{''.join(entries)}</urlset>\n"
    )


def base_url(request: Request) -> str:
    """The absolute address of /docs/ as the client sees it."""
    return f"{root_url(request)}/docs/"


def root_url(request: Request) -> str:
    """The absolute address of the service as the client sees it, without a slash at its end. An invalid Host header is ignored."""
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        name, port = request.scope.get("server") or ("localhost", None)
        host = f"{name}:{port}" if port else name
    return f"{request.scope['scheme']}://{host}{request.scope.get('root_path', '')}"
