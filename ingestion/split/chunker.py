"""A converted page -> its chunks with their questions, those of its translations, and its summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.settings import Settings
from app.core.types import Chunk, Page
from ingestion.convert.document import Document
from ingestion.convert.prepare import Prepared
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError
from ingestion.split import Splitter, open_splitter
from ingestion.split.embedding import BatchEmbedder
from ingestion.split.splitters import prepare_and_cut, with_plain_text
from ingestion.split.translate import NotFaithful, Translator, open_translator
from ingestion.split.written import PageWriter, Questioner, Summariser, open_questioner, open_summariser
from ingestion.workers import Workers

OF_CHUNKS = "/"  # as in 3/8: never part of a fingerprint
REFUSED = "!"
"""Ends the name of a translation that the model can't make. It is tried again when the page changes."""


@dataclass(frozen=True)
class Chunker:
    """Cuts, translates and summarises pages, and asks for questions. Texts that are embedded to find cuts are counted by `embedder` too.

    A page may have `most` chunks; one with more raises `ConversionError`.
    """

    splitter: Splitter
    embedder: BatchEmbedder
    workers: Workers
    most: int
    translator: Translator | None = None
    summariser: Summariser | None = None
    questioner: Questioner | None = None

    @property
    def written(self) -> dict[str, PageWriter]:
        """Writers of what the language model was asked for, with the counts of its calls."""
        makers = {"translations": self.translator, "summaries": self.summariser, "questions": self.questioner}
        return {name: maker.writer for name, maker in makers.items() if maker is not None}

    async def close(self) -> None:
        """Close the connections of the models."""
        for writer in self.written.values():
            await writer.close()

    async def prepared(
        self, document: Document, fetched: Fetched, entry: Entry, settings: Settings, known_hash: str
    ) -> Prepared:
        """The page, with chunks when its text is not the known one and cutting it needs no embedder."""
        entry = entry.without_text()
        made = await self.workers.run(prepare_and_cut, self.splitter, known_hash, document, fetched, entry, settings)
        self._check(made.chunks)
        return made

    async def finished(self, made: Prepared) -> Prepared:
        """The page with its chunks, those of its translations, their questions, and its summary; `note` names what failed, and why.

        Raises `ModelError` when cutting takes an embedder and it fails.
        """
        page, notes, languages, names = made.page, [made.note], list[str](), list[str]()
        chunks = list(made.chunks)
        if not chunks:
            chunks = list(await self._chunks(page))
            page = await self.workers.run(with_plain_text, page, chunks)
        for language, name in self._wanted(page).items():
            assert self.translator is not None
            try:
                translated = await self._chunks(await self.translator.translate(page, language))
            except ModelError as error:
                notes.append(f"not translated into {language}: {error}")
                names += [name + REFUSED] if isinstance(error, NotFaithful) else []
                continue
            there = {chunk.id for chunk in chunks}  # a page of code has nothing to translate
            chunks += [chunk for chunk in translated if chunk.id not in there]
            languages.append(language)
            names.append(name)
        page = replace(page, derived=replace(page.derived, translations=tuple(names)))
        page = await self._summarised(page, notes)
        page, chunks = await self._questioned(page, chunks, notes)
        note = "; ".join(note for note in notes if note)
        return Prepared(page, tuple(chunks), note, tuple(languages))

    def is_complete(self, known: Page, page: Page) -> bool:
        """True when the known state has exactly the translations, summary and questions that the page should have."""
        summary = self.summariser.writer.wanted(page) if self.summariser else ""
        questions = self.questioner.writer.wanted(page) if self.questioner else ""
        return (known.derived.summary_of, known.derived.questions_of) == (summary, questions) and self._is_translated(
            known, page
        )

    def is_translatable(self, page: Page) -> bool:
        """True when the page is to be translated, so that readers can use it in whatever language it is."""
        return bool(self._wanted(page))

    def improves(self, page: Page, known: Page) -> bool:
        """True when a finished page has translations, a summary or questions that its known state lacks.

        While the model is away it has fewer, and the known ones are better.
        """
        if known.derived.translations and not self._is_translated(page, page):
            return False
        if _questioned_chunks(page) < _questioned_chunks(known):
            return False
        return _additions(page) != _additions(known)

    def _is_translated(self, known: Page, page: Page) -> bool:
        return [name.rstrip(REFUSED) for name in known.derived.translations] == list(self._wanted(page).values())

    async def _summarised(self, page: Page, notes: list[str]) -> Page:
        try:
            if self.summariser is not None:
                return await self.summariser.summarised(page)
        except ModelError as error:
            notes.append(f"not summarised: {error}")
        return replace(page, derived=replace(page.derived, summary="", summary_of=""))

    async def _questioned(self, page: Page, chunks: list[Chunk], notes: list[str]) -> tuple[Page, list[Chunk]]:
        made_of = ""
        if self.questioner is not None:
            chunks, note = await self.questioner.questioned(chunks)
            notes.append(note)
            some = f"{sum(bool(chunk.questions) for chunk in chunks)}{OF_CHUNKS}{len(chunks)}"
            made_of = some if note else self.questioner.writer.wanted(page)
        return replace(page, derived=replace(page.derived, questions_of=made_of)), chunks

    def _wanted(self, page: Page) -> dict[str, str]:
        return self.translator.wanted(page) if self.translator else {}

    async def _chunks(self, page: Page) -> tuple[Chunk, ...]:
        if self.splitter.embeds:
            chunks = await self.splitter.split_by(self.embedder.embedding, page)
        else:
            chunks = await self.workers.run(self.splitter.split, page)
        self._check(chunks)
        return chunks

    def _check(self, chunks: Sequence[object]) -> None:
        if len(chunks) > self.most:
            raise ConversionError(
                f"has {len(chunks):,} chunks, and a page may have {self.most:,}: divide the page, leave it out with `exclude`,"
                " or raise DOCS_TUNING__PAGE_CHUNKS"
            )


def open_chunker(
    settings: Settings, embedder: BatchEmbedder, workers: Workers, known: Iterable[Page], *, dry: bool = False
) -> Chunker:
    """Returns the chunker for these settings. Summaries of the known pages are reused; a `dry` one calls no language model.

    Raises `SettingsError` for an unknown splitter, or when a language model is needed and none is configured.
    """
    translator = open_translator(settings, dry=dry)
    summariser = open_summariser(settings, known, dry=dry)
    questioner, most = open_questioner(settings, dry=dry), settings.tuning.page_chunks
    return Chunker(open_splitter(settings), embedder, workers, most, translator, summariser, questioner)


def _questioned_chunks(page: Page) -> float:
    """Returns the number of the page's chunks with questions; infinite if all have."""
    some, incomplete, _ = page.derived.questions_of.partition(OF_CHUNKS)
    if incomplete:
        return int(some)
    return math.inf if some else 0


def _additions(page: Page) -> tuple[object, ...]:
    return page.derived.translations, page.derived.summary_of, page.derived.questions_of
