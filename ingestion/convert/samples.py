"""Which pages of each part of a site are compared in both forms, to decide which form its other pages are read in."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from ingestion.entry import Entry
from ingestion.sources import Source
from ingestion.urls import stem

SAMPLE = 3
"""Pages of a part that are compared: two requests each, in runs in which a page of this part is read."""

SMALLEST = 50
"""Listed pages of a folder that make it a part of its own; such folders often have a template of their own."""

Part = tuple[Source, str]
Form = Literal["markdown", "html", "each"]


@dataclass(frozen=True, slots=True)
class Samples:
    """The parts of the sources, and the sample of each part: always the same pages as long as they are listed.

    `stems` are those of all listed pages.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    by_part: Mapping[Part, tuple[Entry, ...]] = field(default_factory=dict)
    stems: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Samples:
        """The samples of listed pages."""
        pages = [entry for entry in entries if not entry.is_local]
        size = Counter((entry.site, _folder(entry.url)) for entry in pages)
        parts = {
            entry.url: (entry.site, _folder(entry.url) if size[entry.site, _folder(entry.url)] >= SMALLEST else "")
            for entry in pages
        }
        grouped: dict[Part, list[Entry]] = defaultdict(list)
        for entry in pages:
            grouped[parts[entry.url]].append(entry)
        chosen = {part: tuple(sorted(found, key=_rank)[:SAMPLE]) for part, found in grouped.items()}
        return cls(parts, chosen, frozenset(stem(entry.address) for entry in pages))

    def part(self, entry: Entry) -> Part:
        """The part of its source that the page is in."""
        return self.parts.get(entry.url, (entry.site, ""))

    def of_part(self, entry: Entry) -> tuple[Entry, ...]:
        """The pages to compare for this page's part."""
        return self.by_part.get(self.part(entry), (entry,))


@dataclass(frozen=True, slots=True)
class Decision:
    """The form in which the pages of a part are read: the Markdown as it is, the HTML, or the better one of `each` page.

    Pages that are listed as Markdown are at their address with this `ending`.
    """

    form: Form = "markdown"
    ending: str = ""


def decided(reasons: Iterable[str]) -> Form:
    """The form by the reasons for which the Markdown of each compared page is worse, empty where it isn't."""
    found = list(reasons)
    if not any(found):
        return "markdown"
    return "html" if len(found) > 1 and all(found) else "each"


def _folder(url: str) -> str:
    return urlsplit(url).path.lstrip("/").partition("/")[0]


def _rank(entry: Entry) -> bytes:
    return hashlib.sha256(urlsplit(entry.url).path.encode(errors="replace")).digest()
