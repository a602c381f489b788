"""The input and output of a converter: a downloaded body in, a document as clean Markdown out."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from app.core.generation import RepeatedBlock
from app.core.language import Vocabulary, vocabulary
from app.text.invisible import visible
from ingestion.crawl.exchange import Fetched
from ingestion.errors import ConversionError
from ingestion.formats import binary_types

MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown", "text/mdx"})

KINDS = frozenset({
    "note", "tip", "hint", "info", "important", "warning", "caution", "danger", "attention", "error", "success",
    "failure", "bug", "example", "question", "abstract", "todo"
})  # fmt: skip
"""Kinds of notes, which stand in bold at their beginning."""

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b"))
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?+\s*+([\w.:-]++)""", re.IGNORECASE)
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Encodings of Python that no browser knows."""

_ONE_BYTE = ("iso-8859", "iso8859", "latin", "windows-125", "cp125")
"""Encodings that servers name by default, in which all bytes are letters."""

_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A downloaded page: its relative links start from `base`, or else `url`; `media_type` comes without parameters.

    The CSS selectors say, for HTML of a site of its own make, where the content is and what of it isn't content, and which
    of it is content in any case. `repeated` is what most pages of the site repeat, `robots` the X-Robots-Tag header,
    which counts as little as that of the page where the source `ignores_noindex`.
    `words` are those by which a page tells of its dates and scripts. `body` is the download as it is; of a binary type,
    `text` is empty. `anchors` says how the source addresses sections.
    """

    url: str
    text: str
    media_type: str = "text/html"
    content_selector: str = ""
    drop_selectors: tuple[str, ...] = ()
    words: Vocabulary = field(default_factory=vocabulary)
    base: str = ""
    body: bytes = b""
    anchors: str = ""
    keep_selectors: tuple[str, ...] = ()
    repeated: tuple[RepeatedBlock, ...] = ()
    robots: str = ""
    ignores_noindex: bool = False

    @property
    def is_mdx(self) -> bool:
        """True when the text may hold JSX."""
        return self.media_type == "text/mdx" or self.url.partition("?")[0].endswith(".mdx")


@dataclass(frozen=True, slots=True)
class Document:
    """A page as Markdown that starts with its h1; headings end in ` {#id}` where their anchor is known.

    `languages` holds what the page says of its own language, by where it says so; Dates and `version` (several with commas between) are as the page gives
    them, or empty. `note` says what of the
    source's settings didn't fit, or what of its text is missing. `raw` is true of what came as Markdown: its headings may have anchors that it
    doesn't tell.
    """

    title: str
    markdown: str
    languages: Mapping[str, str] = field(default_factory=dict)
    canonical: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    published: str = ""
    modified: str = ""
    version: str = ""
    note: str = ""
    raw: bool = False


class Converter(Protocol):
    """One way to make a document of a body."""

    def matches(self, source: SourceText) -> bool:
        """True when this converter can read the source."""

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when the source holds no text."""


def source_text(fetched: Fetched, words: Vocabulary) -> SourceText:
    """A download as its converter gets it. Raises `ConversionError` for bytes that are no text and that none reads."""
    if fetched.media_type in binary_types():
        return SourceText(fetched.url, "", fetched.media_type, words=words, body=fetched.body)
    if _is_binary(fetched.body):
        raise ConversionError(f"{fetched.url} is binary, not text")
    text = decode(fetched.body, fetched.charset, words.encoding)
    return SourceText(fetched.url, text, fetched.media_type, words=words, body=fetched.body, robots=fetched.robots)


def _is_binary(body: bytes) -> bool:
    """True when many bytes are control characters."""
    start = body[:4096]
    return not start.startswith(_UTF16) and len(start.translate(None, _CONTROLS)) < 0.95 * len(start)


def decode(body: bytes, charset: str = "", usual: str = "") -> str:
    """The text of a body, decoded by its byte order mark, else `charset`, its <meta> tag, UTF-8, or `usual`.

    UTF-8 comes before an encoding with one byte for each letter, in which it would be readable, too: servers name these by default.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, "replace")
    meta = _META_CHARSET.search(body[:4096])
    named = (charset, meta[1].decode("ascii", "replace") if meta else "", "utf-8")
    for name in (one for given in named for one in (*(["utf-8"] * given.lower().startswith(_ONE_BYTE)), given)):
        try:
            if codecs.lookup(name or "utf-8").name not in _NO_CHARSETS:
                return body.decode(name or "utf-8")
        except (LookupError, ValueError):
            continue
    return body.decode(usual or vocabulary().encoding, "replace")


def well_formed(document: Document) -> Document:
    """The document without characters that nobody sees, and without halves of surrogate pairs, which no encoding and no store takes."""
    values = {field.name: getattr(document, field.name) for field in fields(document)}
    return replace(document, **{name: _whole(value) for name, value in values.items()})


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return visible(_HALF.sub("\ufffd", value))
    return {_whole(key): _whole(item) for key, item in value.items()} if isinstance(value, Mapping) else value
