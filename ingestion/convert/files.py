"""Parts that converters of files share: the files beside a page, names of fonts, and HTML that is written from a file."""

import html
import posixpath
import re
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from ingestion.convert.document import Document, SourceText
from ingestion.crawl.directory import LARGEST, files_below

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


@dataclass(frozen=True, slots=True)
class Tree:
    """The files below `root`, the directory of a source, which may be empty for none."""

    root: str

    def place(self, path: str) -> Path | None:
        """Returns the path of the file on this machine; None if it isn't there, or not below the root."""
        path = posixpath.normpath(path)
        if not self.root or path.startswith(("../", "/")) or "\0" in path:
            return None
        try:
            target = (Path(self.root) / path).resolve()
            return target if target.is_relative_to(Path(self.root).resolve()) and target.is_file() else None
        except (OSError, RuntimeError, ValueError):
            return None

    def text(self, path: str) -> str:
        """The text of the file; empty if it isn't there, or is larger than `LARGEST` bytes."""
        file = self.place(path) if path else None
        try:
            if file is None or file.stat().st_size > LARGEST:
                return ""
            return file.read_text("utf-8-sig", "replace")
        except OSError:
            return ""

    def paths(self, endings: tuple[str, ...], most: int) -> list[str]:
        """The paths of files with these endings, at most so many, in order."""
        files = files_below(Path(self.root)) if self.root else ()
        shown = (path for path in files if not any(folder.startswith("_") for folder in path.parts[:-1]))
        named = (path.as_posix() for path in shown if path.name.endswith(endings))
        return sorted(islice(named, most))


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
