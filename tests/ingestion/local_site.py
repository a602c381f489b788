"""A real web site on loopback whose pages a test can change while it runs."""

from __future__ import annotations

import hashlib
import importlib.util
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.listing import list_pages
from ingestion.entry import Listing
from ingestion.sources import Source
from ingestion.workers import Workers
from tests.serving import serving


@dataclass
class Answer:
    """What the site answers at one path; it gives an ETag unless told not to. `delay` is in seconds.

    With `endless` the body comes again and again until the client leaves.
    """

    body: bytes = b""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    etag: bool = True
    delay: float = 0.0
    endless: bool = False


@dataclass
class LocalSite:
    """The paths of a site; `log` has (path, status, request headers) of every request, `accepting`, `authorization`
    and `cookie` the last headers of these names.
    """

    url: str = ""
    accepting: str = ""
    authorization: str = ""
    cookie: str = ""
    answers: dict[str, Answer | Callable[[], Answer]] = field(default_factory=dict)
    log: list[tuple[str, int, dict[str, str]]] = field(default_factory=list)

    def put(self, path: str, body: str | bytes, media_type: str = "text/html; charset=utf-8", **more: Any) -> None:
        """Answer this body at the path from now on."""
        content = body.encode() if isinstance(body, str) else body
        self.answers[path] = Answer(content.replace(b"{site}", self.url.encode()), media_type, **more)

    def page(self, path: str, title: str, *paragraphs: str) -> None:
        """Put an HTML page with a heading and paragraphs."""
        body = "".join(f"<p>{text}</p>" for text in paragraphs)
        nav = "<nav>Menu</nav>"
        self.put(
            path,
            f"<html lang=en><head><title>{title}</title></head><body>{nav}<main><h1>{title}</h1>{body}</main></body>",
        )

    def sitemap(self, *paths: str, at: str = "/sitemap.xml") -> str:
        """Put a sitemap of these paths and give its address."""
        urls = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in paths)
        self.put(at, f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>', "application/xml")
        return self.url + at

    def statuses(self, path: str) -> list[int]:
        """What was answered at this path so far."""
        return [status for asked, status, _ in self.log if asked == path]


def load(path: Path) -> ModuleType:
    """A script of the shared corpora as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


async def list_sources(sources: Sequence[Source], fetcher: Fetcher) -> Listing:
    """What the sources list."""
    async with Workers() as workers:
        return await list_pages(sources, fetcher, workers)


@contextmanager
def local_site(tls: ssl.SSLContext | None = None) -> Iterator[LocalSite]:
    """A site on a free port of loopback, stopped at the end; with `tls` at https://localhost."""
    site = LocalSite()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.accepting = self.headers.get("Accept", "")
            site.authorization = self.headers.get("Authorization", "")
            site.cookie = self.headers.get("Cookie", "")
            found = site.answers.get(self.path, Answer(b"Not found", "text/plain", 404))
            answer = found() if callable(found) else found
            time.sleep(answer.delay)
            etag = f'"{hashlib.sha256(answer.body).hexdigest()[:16]}"'
            fresh = answer.status == 200 and answer.etag and self.headers.get("If-None-Match") == etag
            status, body = (304, b"") if fresh else (answer.status, answer.body)
            site.log.append((self.path, status, dict(self.headers.items())))
            self.send_response(status)
            self.send_header("Content-Type", answer.media_type)
            if answer.endless:
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(body)))
            if answer.etag and answer.status == 200:
                self.send_header("ETag", etag)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            while answer.endless:
                self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: Any) -> None:
            """A client that leaves early is part of the tests."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with serving(server) as url:
        site.url = url if tls is None else f"https://localhost:{server.server_port}"
        yield site
