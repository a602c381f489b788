"""Parts that converters of files share: names of fonts, and HTML that is written from a file."""

import html
import re
from dataclasses import dataclass, replace

from ingestion.convert.document import Document, SourceText

_MONO = re.compile(
    r"mono|courier|consolas|typewriter|menlo|terminal|lucida ?sans ?type|(?:cm|sf|lm|ec|tx)(?:sl|it|b)?tt|(?:fira|source) ?code",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b(?:source|preformatted|html code|code|verbatim|listing|computer)\b", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|demi|-medi|(?:cm|sf)bx", re.IGNORECASE)


def is_monospace(font: str) -> bool:
    """True for a font of letters with the same width, as code is written in."""
    return _MONO.search(font) is not None


def is_bold(font: str) -> bool:
    """True for the bold cut of a font."""
    return _BOLD.search(font) is not None


def is_code_style(style: str) -> bool:
    """True for the name of a style for code, as office programs and converters name them."""
    return _CODE.search(style.replace("_20_", " ").replace("_", " ")) is not None


_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-\w+)*")


@dataclass(frozen=True, slots=True)
class Facts:
    """Metadata of the file, or empty; dates are ISO 8601."""

    title: str = ""
    created: str = ""
    modified: str = ""
    language: str = ""


def written_document(source: SourceText, main: str, title: str, facts: Facts) -> Document:
    """The document of the markup of a `<main>` element. The selectors of the source are for its own HTML, not for this."""
    from ingestion.convert.html.page import HtmlConverter  # only where pages are converted

    lang = f' lang="{html.escape(facts.language)}"' if _LANGUAGE.fullmatch(facts.language) else ""
    markup = f"<html{lang}><body>{main}</body></html>"
    page = replace(source, text=markup, media_type="text/html", content_selector="", drop_selectors=())
    read = HtmlConverter().convert(page)
    return replace(read, title=title, published=facts.created, modified=facts.modified)
