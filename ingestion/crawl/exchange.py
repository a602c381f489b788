"""A request for a page, and its response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx

ACCEPT_MARKDOWN = "text/markdown, text/html;q=0.8, */*;q=0.1"
ACCEPT_HTML = "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.5, */*;q=0.1"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
BINARY_TYPES = frozenset({PDF, DOCX, ODT})
"""Types whose converters read the download as it is: it isn't decoded to text first."""
FILE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".md": "text/markdown",
        ".mdx": "text/mdx",
        ".markdown": "text/markdown",
        ".rst": "text/x-rst",
        ".adoc": "text/asciidoc",
        ".asciidoc": "text/asciidoc",
        ".pdf": PDF,
        ".docx": DOCX,
        ".odt": ODT,
    }
)
"""The endings of files that are pages of a directory, with the media types by which their converters know them."""
BUILT_TYPES: Mapping[str, str] = MappingProxyType({".html": "text/html", ".htm": "text/html"})
"""Those of a built site, which are pages where they outnumber the texts that a site is built from."""
FILE_FACTOR = 5
"""How much larger than a page a file may be: most of a PDF file is fonts and pictures."""

_ANY_FILE = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-pdf", "application/zip"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
PAGE_TYPES = HTML_TYPES | {"text/x-markdown", "text/plain", "", *FILE_TYPES.values()}

_LINK = re.compile(r"<([^<>]*)>((?:\s*+;\s*+[\w*-]++(?:\s*+=\s*+(?:\"[^\"]*+\"|[^\s;,\"]++))?+)*+)")
_PARAMETER = re.compile(r"(?<![\w*-])([\w*-]++)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of 200 or 304. `url` is where it came from after `redirects`, each of them an address that moved.

    `markdown_url` is the page's raw Markdown as a Link header names it, as written there; `signal` the
    Content-Signal header, `robots` the X-Robots-Tag header.
    """

    url: str
    status: int
    body: bytes = b""
    media_type: str = ""
    charset: str = ""
    etag: str = ""
    last_modified: str = ""
    language: str = ""
    redirects: tuple[str, ...] = ()
    markdown_url: str = ""
    signal: str = ""
    robots: str = ""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What to ask for. Validators of the known copy make the request conditional; types None takes any.

    `max_bytes` and `seconds` are limits of the answer; 0 stands for those of the settings.
    """

    url: str
    etag: str = ""
    last_modified: str = ""
    types: frozenset[str] | None = PAGE_TYPES
    max_bytes: int = 0
    robots: bool = True
    accept: str = ACCEPT_MARKDOWN
    seconds: float = 0.0

    @property
    def headers(self) -> dict[str, str]:
        """Request headers."""
        headers = {"Accept": self.accept, "If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        # a site may give a validator that no header can carry
        return {name: value for name, value in headers.items() if value and value.isascii()}


def type_of(given: str, url: str) -> str:
    """The media type of a download. Some servers call every file a stream of bytes: then its ending tells."""
    if given not in _ANY_FILE:
        return given
    ending = PurePosixPath(urlsplit(url).path).suffix.lower()
    return FILE_TYPES.get(ending, given)


def most_bytes(media_type: str, most: int) -> tuple[int, str]:
    """The largest size of a download, in bytes, where a page may have `most`, and what to do beyond it."""
    if media_type not in BINARY_TYPES:
        return most, ""
    return FILE_FACTOR * most, f": a file may be {FILE_FACTOR} times as large as DOCS_CRAWL_MAX_BYTES"


def linked_markdown(header: str) -> str:
    """The target of a Link header's `rel=alternate; type=text/markdown`, as written; empty if there is none."""
    for target, written in _LINK.findall(header):
        parameters = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(written)}
        if (
            "alternate" in parameters.get("rel", "").lower().split()
            and parameters.get("type", "").lower() == "text/markdown"
        ):
            return str(target).strip()
    return ""


def refuses_ai_input(signal: str) -> bool:
    """True when a Content-Signal forbids using the content as input of AI answers."""
    return re.search(r"(?:^|[,\s])ai-input\s*=\s*no\b", signal.lower()) is not None


def given_type(response: httpx.Response) -> str:
    """The media type that the server gives, without parameters, in lower case."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def answered(url: str, body: bytes, media_type: str, response: httpx.Response) -> Fetched:
    """The download that an answer of 200 is."""
    headers = response.headers
    return Fetched(
        url,
        200,
        body,
        media_type,
        response.charset_encoding or "",
        etag=headers.get("etag", ""),
        last_modified=headers.get("last-modified", ""),
        language=headers.get("content-language", ""),
        markdown_url=linked_markdown(headers.get("link", "")),
        signal=headers.get("content-signal", ""),
        robots=headers.get("x-robots-tag", ""),
    )
