"""What a converter gets and gives: a downloaded body in, a document as clean Markdown out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from app.core.language import Vocabulary, vocabulary

MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown", "text/mdx"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?+\s*+([\w.:-]++)""", re.IGNORECASE)
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Encodings of Python that no browser knows."""

_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A downloaded page: `url` is where its relative links start from, `media_type` comes without parameters.

    The CSS selectors say, for HTML of a site of its own make, where the content is and what of it isn't content.
    `words` are those by which a page tells of its dates and scripts.
    """

    url: str
    text: str
    media_type: str = "text/html"
    content_selector: str = ""
    drop_selectors: tuple[str, ...] = ()
    words: Vocabulary = field(default_factory=vocabulary)

    @property
    def is_mdx(self) -> bool:
        """True when the text may hold JSX."""
        return self.media_type == "text/mdx" or self.url.partition("?")[0].endswith(".mdx")


@dataclass(frozen=True, slots=True)
class Document:
    """A page as Markdown that starts with its h1; headings end in ` {#id}` where their anchor is known.

    `languages` holds what the page says of its own language, by where it says so; `markdown_url` is the
    page's own raw Markdown, when it names one. Dates and `version` (several with commas between) are as the page gives
    them, or empty. `note` says what of the
    source's settings didn't fit. `raw` is true of what came as Markdown: its headings may have anchors that it
    doesn't tell.
    """

    title: str
    markdown: str
    languages: Mapping[str, str] = field(default_factory=dict)
    canonical: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    markdown_url: str = ""
    published: str = ""
    modified: str = ""
    version: str = ""
    note: str = ""
    raw: bool = False


class Converter(Protocol):
    """One way to make a document of a body."""

    def matches(self, source: SourceText) -> bool:
        """True when this converter can read the source."""
        ...

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when the source holds no text."""
        ...


def decode(body: bytes, charset: str = "", usual: str = "") -> str:
    """The text of a body, decoded by its byte order mark, else `charset`, its <meta> tag, UTF-8, or `usual`."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, "replace")
    meta = _META_CHARSET.search(body[:4096])
    for name in (charset, meta[1].decode("ascii", "replace") if meta else "", "utf-8"):
        try:
            if codecs.lookup(name or "utf-8").name not in _NO_CHARSETS:
                return body.decode(name or "utf-8")
        except (LookupError, ValueError):
            continue
    return body.decode(usual or vocabulary().encoding, "replace")


def well_formed(document: Document) -> Document:
    """The document without halves of surrogate pairs, which no encoding and no store takes."""
    given = {field.name: getattr(document, field.name) for field in fields(document)}
    return replace(document, **{name: _whole(value) for name, value in given.items()})


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    return {_whole(key): _whole(one) for key, one in value.items()} if isinstance(value, Mapping) else value
