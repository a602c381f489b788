"""A page -> its chunks, those of its translations, and its summary, beside the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.types import Chunk, Page
from ingestion.convert.prepare import Prepared
from ingestion.convert.workers import Workers
from ingestion.publish.embed import Embedding
from ingestion.split import Splitter
from ingestion.split.summaries import Summariser
from ingestion.split.translate import NotFaithful, Translator

REFUSED = "!"
"""Ends the name of a translation that the model can't make: not to be tried again before the page changes."""


@dataclass(frozen=True)
class Chunking:
    """Cuts pages beside the event loop. What is embedded to find where to cut is counted by `embedding` too."""

    splitter: Splitter
    embedding: Embedding
    workers: Workers
    translator: Translator | None = None
    summariser: Summariser | None = None

    async def finished(self, made: Prepared) -> Prepared:
        """The page with its chunks, made now if they aren't yet, those of its translations, and its summary; `note` says what failed, and why.

        Raises `ModelError` when cutting takes an embedder and it fails.
        """
        page, notes, languages, names = made.page, [made.note], list[str](), list[str]()
        chunks = list(made.chunks or await self._chunks(page))
        for language, name in self._wanted(page).items():
            assert self.translator is not None
            try:
                translated = await self._chunks(await self.translator.translate(page, language))
            except ModelError as error:
                notes.append(f"not translated into {language}: {error}")
                names += [name + REFUSED] if isinstance(error, NotFaithful) else []
                continue
            there = {chunk.id for chunk in chunks}  # where nothing could be translated, as in a page of code
            chunks += [chunk for chunk in translated if chunk.id not in there]
            languages.append(language)
            names.append(name)
        page = await self._summarised(replace(page, translations=tuple(names)), notes)
        note = "; ".join(note for note in notes if note)
        return Prepared(page, tuple(chunks), note, tuple(languages))

    def has_all(self, known: Page, page: Page) -> bool:
        """True when the known state of a page has the summary and translations that the page should have, and no other."""
        summary = self.summariser.wanted(page) if self.summariser else ""
        return known.summary_of == summary and self.has_translations(known, page)

    def has_translations(self, known: Page, page: Page) -> bool:
        """True when the known state of a page has all the translations that the page should have, and no other."""
        return [name.rstrip(REFUSED) for name in known.translations] == list(self._wanted(page).values())

    async def _summarised(self, page: Page, notes: list[str]) -> Page:
        if self.summariser is None:
            return replace(page, summary="", summary_of="")
        try:
            return await self.summariser.summarised(page)
        except ModelError as error:
            notes.append(f"not summarised: {error}")
            return replace(page, summary="", summary_of="")

    def _wanted(self, page: Page) -> dict[str, str]:
        return self.translator.wanted(page) if self.translator else {}

    async def _chunks(self, page: Page) -> tuple[Chunk, ...]:
        windows, chunks = await self.workers.run(_by_text, self.splitter, page)
        if not windows:
            return chunks
        return await self.workers.run(self.splitter.split, page, await self.embedding.vectors(windows))


def _by_text(splitter: Splitter, page: Page) -> tuple[Sequence[str], tuple[Chunk, ...]]:
    """(what to embed first, nothing), or (nothing, the chunks)."""
    windows = splitter.windows(page)
    return windows, () if windows else splitter.split(page)
