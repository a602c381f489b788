"""HTML that is written from a file that isn't HTML, such as a PDF, -> its document, with what the file says of itself."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace

from ingestion.convert.document import Document, SourceText
from ingestion.convert.html import HtmlConverter

_HTML = HtmlConverter()
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-\w+)*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the file says of itself, or empty; dates are ISO 8601."""

    title: str = ""
    created: str = ""
    modified: str = ""
    language: str = ""


def written_document(source: SourceText, main: str, title: str, facts: Facts) -> Document:
    """The document of the markup of a `<main>` element. The selectors of the source are for its own HTML, not for this."""
    lang = f' lang="{html.escape(facts.language)}"' if _LANGUAGE.fullmatch(facts.language) else ""
    markup = f"<html{lang}><body>{main}</body></html>"
    read = _HTML.convert(replace(source, text=markup, media_type="text/html", content_selector="", drop_selectors=()))
    return replace(read, title=title, published=facts.created, modified=facts.modified)
