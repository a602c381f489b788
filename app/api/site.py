"""The documentation site under /docs/: HTML and raw Markdown of each page, a sitemap, a stylesheet."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.api.sitehtml import PagesByName, counterparts, link, missing_html, page_html
from app.api.sitepages import HOME, DocPage, Pages

STYLE = "style.css"
SITEMAP = "sitemap.xml"
SECURITY = "default-src 'none'; style-src 'self'; img-src 'self' data: https:; base-uri 'none'; form-action 'none'"
_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


def find_docs() -> Path | None:
    """The documentation this package comes with: inside it, or beside it in a checkout; None where there is none."""
    package = Path(str(files("app")))
    beside = package.parent
    if (package / "docs").is_dir():
        return package / "docs"
    return beside / "docs" if (beside / "pyproject.toml").is_file() and (beside / "docs").is_dir() else None


class Site:
    """Serves a folder of documentation; changed files show at once."""

    def __init__(self, folder: Path | None, *, default_language: str) -> None:
        self._pages = Pages(folder)
        self._default_language = default_language
        style = files("app.api").joinpath("static", STYLE)
        self._style = style.read_text(encoding="utf-8")
        self._style_modified = datetime.fromtimestamp(int(Path(str(style)).stat().st_mtime), UTC)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for path in ("/docs", "/docs/{path:path}"):
            app.add_api_route(path, self.serve, methods=["GET", "HEAD"], include_in_schema=False)

    def read(self) -> None:
        """Read all pages now, so that no reader waits for it."""
        self._pages.all()

    async def serve(self, request: Request) -> Response:
        """Whatever is at the request's path below /docs."""
        path = request.path_params.get("path")
        if path is None:
            return RedirectResponse("docs/", 307)
        pages = self._pages.all()
        if path == STYLE:
            return _fresh(request, self._style, "text/css", self._style_modified)
        if path == SITEMAP:
            modified = max((page.modified for page in pages.values()), default=self._style_modified)
            return _fresh(request, sitemap(pages, base_url(request)), "application/xml", modified)
        return self._page(request, path, pages)

    def _page(self, request: Request, path: str, pages: PagesByName) -> Response:
        language, slash, name = path.partition("/")
        languages = list(dict.fromkeys(code for code, _ in pages))
        if not path and languages:
            preferred = preferred_language(
                request.headers.get("accept-language", ""), languages, self._default_language
            )
            return RedirectResponse(f"{preferred}/", 307, {"vary": "Accept-Language", "cache-control": "no-cache"})
        if page := pages.get((language, name.removesuffix(".md") if name else HOME)):
            if to := _better_address(page, slash, name):
                return RedirectResponse(to, 308)
            return self._answer(request, page, pages, raw=name.endswith(".md"))
        if name.endswith("/") and pages.get((language, name[:-1])):
            return RedirectResponse(f"../{name[:-1]}", 308)
        return self._missing(request, path, languages, pages)

    def _answer(self, request: Request, page: DocPage, pages: PagesByName, *, raw: bool) -> Response:
        if raw or prefers_markdown(request.headers.get("accept", "")):
            headers = {} if raw else {"vary": "Accept", "content-location": f"{quote(page.name)}.md"}
            return _fresh(request, page.markdown, "text/markdown", page.modified, headers)
        headers = {"vary": "Accept", "content-security-policy": SECURITY, "content-language": page.language}
        return _fresh(request, page_html(page, pages, base_url(request)), "text/html", page.modified, headers)

    def _missing(self, request: Request, path: str, languages: list[str], pages: PagesByName) -> Response:
        language = path.partition("/")[0]
        if language not in languages:
            accepted = request.headers.get("accept-language", "")
            language = preferred_language(accepted, languages, self._default_language)
        frame = missing_html(language, pages, f"{request.scope.get('root_path', '')}/docs/")
        return Response(frame, 404, {"content-security-policy": SECURITY}, "text/html")


def sitemap(pages: PagesByName, base: str) -> str:
    """All pages with their dates and their counterparts in other languages, as sitemaps.org and Google have it."""
    entries = []
    for page in pages.values():
        others = counterparts(page, pages)
        alternates = "".join(
            f'\n    <xhtml:link rel="alternate" hreflang="{code}" href="{escape(base + link(other))}"/>'
            for code, other in others.items()
            if len(others) > 1
        )
        place = f"<loc>{escape(base + link(page))}</loc>\n    <lastmod>{page.modified.isoformat()}</lastmod>"
        entries.append(f"  <url>\n    {place}{alternates}\n  </url>\n")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">\n'
        f"{''.join(entries)}</urlset>\n"
    )


def base_url(request: Request) -> str:
    """The absolute address of /docs/ as the client sees it; a Host that is none is not repeated."""
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        name, port = request.scope.get("server") or ("localhost", None)
        host = f"{name}:{port}" if port else name
    return f"{request.scope['scheme']}://{host}{request.scope.get('root_path', '')}/docs/"


def prefers_markdown(accept: str) -> bool:
    """True when a client names text/markdown and doesn't like HTML better; browsers never do."""
    weights = _weights(accept)
    markdown = weights.get("text/markdown", 0.0)
    return markdown > 0 and markdown >= max(weights.get("text/html", 0.0), weights.get("application/xhtml+xml", 0.0))


def preferred_language(accepted: str, languages: list[str], default: str) -> str:
    """The language of the site that the client likes best."""
    weights = _weights(accepted)
    known = {code: weight for tag, weight in weights.items() if (code := tag.partition("-")[0]) in languages and weight}
    if known:
        return max(known, key=lambda code: known[code])
    return default if default in languages or not languages else languages[0]


def _weights(header: str) -> dict[str, float]:
    """What an Accept header lists, lower case, with the q of each."""
    weights = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        q = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        weights[name] = float(q) if re.fullmatch(r"[01](\.\d{0,3})?", q) else 0.0
    return weights


def _better_address(page: DocPage, slash: str, name: str) -> str:
    """Where to send a client that asked for a home page by another address; else empty."""
    if page.name != HOME:
        return ""
    return f"{page.language}/" if not slash else "./" if name == HOME else ""


def _fresh(
    request: Request, text: str, kind: str, modified: datetime, headers: dict[str, str] | None = None
) -> Response:
    """The text, or 304 when the client has it already."""
    body = text.encode()
    tag = f'"{sha256(body).hexdigest()[:24]}"'
    about = {
        "etag": tag,
        "last-modified": format_datetime(modified, usegmt=True),
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        **(headers or {}),
    }
    if _known(request, tag, modified):
        return Response(None, 304, about)
    return Response(body, 200, {**about, "content-type": f"{kind}; charset=utf-8"})


def _known(request: Request, tag: str, modified: datetime) -> bool:
    if tags := request.headers.get("if-none-match"):
        return tags.strip() == "*" or tag in [entry.strip().removeprefix("W/") for entry in tags.split(",")]
    try:
        return modified <= parsedate_to_datetime(request.headers.get("if-modified-since", ""))
    except (ValueError, TypeError):  # no date, or one without a time zone
        return False
