"""A page -> its chunks, and those of its translations, beside the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.types import Chunk, Page
from ingestion.embed import Embedding
from ingestion.prepare import Prepared
from ingestion.split import Splitter
from ingestion.translate import NotFaithful, Translator

REFUSED = "!"
"""Ends the name of a translation that the model can't make: not to be tried again before the page changes."""


@dataclass(frozen=True)
class Chunking:
    """Cuts pages in `thread`. What is embedded to find where to cut is counted by `embedding` too."""

    splitter: Splitter
    embedding: Embedding
    thread: ThreadPoolExecutor
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
        loop = asyncio.get_running_loop()
        windows = await loop.run_in_executor(self.thread, self.splitter.windows, page)
        vectors = await self.embedding.vectors(windows) if windows else ()
        return await loop.run_in_executor(self.thread, self.splitter.split, page, vectors)
