"""A request for a page, and its response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

ACCEPT_MARKDOWN = "text/markdown, text/html;q=0.8, */*;q=0.1"
ACCEPT_HTML = "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.5, */*;q=0.1"
FILE_TYPES: Mapping[str, str] = MappingProxyType(
    {".md": "text/markdown", ".mdx": "text/mdx", ".markdown": "text/markdown"}
)
"""The endings of files that are pages of a directory, with the media types by which their converters know them."""
PAGE_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/x-markdown", "text/plain", "", *FILE_TYPES.values()}
)

_LINK = re.compile(r"<([^<>]*)>((?:\s*+;\s*+[\w*-]++(?:\s*+=\s*+(?:\"[^\"]*+\"|[^\s;,\"]++))?+)*+)")
_PARAMETER = re.compile(r"(?<![\w*-])([\w*-]++)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))")


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of 200 or 304. `url` is where it came from after `redirects`, each of them an address that moved.

    `markdown_url` is the page's raw Markdown as a Link header names it, as written there; `signal` the
    Content-Signal header.
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


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What to ask for. Validators of the known copy make the request conditional; types None takes any."""

    url: str
    etag: str = ""
    last_modified: str = ""
    types: frozenset[str] | None = PAGE_TYPES
    max_bytes: int = 0
    robots: bool = True
    accept: str = ACCEPT_MARKDOWN

    @property
    def headers(self) -> dict[str, str]:
        """Request headers."""
        headers = {"Accept": self.accept, "If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        # a site may give a validator that no header can carry
        return {name: value for name, value in headers.items() if value and value.isascii()}


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
