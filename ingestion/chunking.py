"""A page -> its chunks, and those of its translations, beside the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.types import Chunk, Page
from ingestion.embed import Embedding
from ingestion.prepare import Prepared
from ingestion.split import Splitter
from ingestion.translate import NotFaithful, Translator
from ingestion.workers import Workers

REFUSED = "!"
"""Ends the name of a translation that the model can't make: not to be tried again before the page changes."""


@dataclass(frozen=True)
class Chunking:
    """Cuts pages beside the event loop. What is embedded to find where to cut is counted by `embedding` too."""

    splitter: Splitter
    embedding: Embedding
    workers: Workers
    translator: Translator | None = None

    async def finished(self, made: Prepared) -> Prepared:
        """The page with its chunks and those of its translations; `note` says what couldn't be translated, and why.

        Raises `ModelError` when cutting takes an embedder and it fails.
        """
        page, notes, languages, names = made.page, [made.note], list[str](), list[str]()
        chunks = list(await self._chunks(page))
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
        page = replace(page, translations=tuple(names))
        note = "; ".join(note for note in notes if note)
        return Prepared(page, tuple(chunks), note, tuple(languages))

    def has_translations(self, known: Page, page: Page) -> bool:
        """True when the known state of a page has all the translations that the page should have, and no other."""
        return [name.rstrip(REFUSED) for name in known.translations] == list(self._wanted(page).values())

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
