"""Pages that weren't translated, maybe with a note about that above the text: which listed page they repeat.

A site with languages often has an address in each of them for every page. Where the text is in another language than the page
declares, the page in the language of the text is looked for, and their blocks are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from app.core.language import Vocabulary
from app.core.types import Page
from ingestion.convert.prepare import Prepared, same_text, text_hash, without_targets
from ingestion.convert.reader import DocumentReader
from ingestion.entry import Entry
from ingestion.errors import is_of_page
from ingestion.language_tags import counterparts, primary_language
from ingestion.urls import public_url

_MOST = 0.8
"""The least share of the original's blocks that a page must have to be the same one."""

_OWN = 0.5
"""The largest share of a page's blocks that the original lacks, such as a note and translated labels."""


class _Text(NamedTuple):
    same: str
    blocks: frozenset[str]


@dataclass
class Originals:
    """The pages of a run that others may repeat; `listed` has its entries by public address."""

    documents: DocumentReader
    listed: Mapping[str, Entry]
    words: Vocabulary
    _texts: dict[str, _Text | None] = field(default_factory=dict)
    _wanted: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        found = (other for url in self.listed for other in counterparts(url, self.words.codes, self.words))
        self._wanted = frozenset(other for other in found if other in self.listed)

    async def merged(self, made: Prepared) -> Prepared:
        """The page as one with the text of its original, if it repeats one in another language than it declares."""
        page = made.page
        if not made.note:
            if page.url in self._wanted or page.alternates:
                self._texts[page.url] = _text(page.markdown, page.hash)
            return made
        own = _text(page.markdown, page.hash)
        for url in self._candidates(page):
            original = await self._text_of(url)
            if original is not None and _repeats(own.blocks, original.blocks):
                same = replace(page, hash=original.same + page.hash[len(original.same) :], canonical=url)
                return replace(made, page=same, note="")
        return made

    def _candidates(self, page: Page) -> Iterable[str]:
        found = [*self._alternates(page), *counterparts(page.url, (page.language,), self.words)]
        return dict.fromkeys(url for url in found if url in self.listed and url != page.url)

    def _alternates(self, page: Page) -> Iterator[str]:
        for tag, url in page.alternates.items():
            if primary_language(tag, self.words) == page.language:
                yield url

    async def _text_of(self, url: str) -> _Text | None:
        """The text of a listed page, which may have to be read before its turn; None if it can't be."""
        if url not in self._texts:
            self._texts[url] = await self._read(self.listed[url])
        return self._texts[url]

    async def _read(self, entry: Entry) -> _Text | None:
        try:
            document, fetched = await self.documents.read(entry, await self.documents.fetch_early(entry))
        except Exception as error:
            if not is_of_page(error):
                raise
            return None  # its own turn says what is wrong with it
        if fetched.redirects and public_url(fetched.url) != entry.address:
            return None
        return _text(document.markdown, text_hash(document.markdown))


def _text(markdown: str, hashed: str) -> _Text:
    blocks = (" ".join(block.split()) for block in without_targets(markdown).split("\n\n"))
    return _Text(same_text(hashed), frozenset(filter(None, blocks)))


def _repeats(own: frozenset[str], original: frozenset[str]) -> bool:
    shared = len(own & original)
    return shared >= _MOST * len(original) and shared > (1 - _OWN) * len(own)
