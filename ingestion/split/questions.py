"""Questions that chunks answer, and keywords, by the language model, in every language of readers (doc2query)."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakValueDictionary

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.types import Chunk, Page
from app.text.language_lines import form_of, names_of, parse
from ingestion.split.kept_texts import keep, read_kept
from ingestion.split.page_writer import PageWriter, open_page_writer, prompt_name

PROMPT = "questions"
LINE = "…? …? …? …, …, …"
LONGEST = 1200
"""Characters of the questions in one language."""


@dataclass
class Questioner:
    """Gives chunks their questions. What the model wrote is kept in `folder`, by the text and the prompt."""

    writer: PageWriter
    folder: Path
    _at_work: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def wanted(self, page: Page) -> str:
        """A fingerprint of what the questions of the page's chunks depend on. It doesn't need the Markdown."""
        return hashlib.sha256(f"{page.hash}\x00{self.writer.system(page.language)}".encode()).hexdigest()[:16]

    async def questioned(self, chunks: Sequence[Chunk]) -> tuple[list[Chunk], str]:
        """The chunks with their questions, and why some have none; empty if all have them."""
        made = await asyncio.gather(*(self._questions(chunk) for chunk in chunks))
        failed = Counter(found for found in made if isinstance(found, str))
        note = "; ".join(f"{count} of {len(chunks)} chunks without questions: {why}" for why, count in failed.items())
        return [
            chunk if isinstance(found, str) else replace(chunk, questions=tuple(found.items()))
            for chunk, found in zip(chunks, made, strict=True)
        ], note

    async def _questions(self, chunk: Chunk) -> Mapping[str, str] | str:
        text = _shown(chunk)
        key = hashlib.sha256(f"{text}\x00{self.writer.system(chunk.language)}".encode()).hexdigest()[:24]
        file = self.folder / f"{key}.txt"
        async with self._at_work.setdefault(file, asyncio.Lock()):  # copies of a page may be read at the same time
            written = await asyncio.to_thread(read_kept, file)
            if not written:
                try:
                    written = await self.writer.write(chunk.language, text, self._parsed)
                except ModelError as error:
                    return str(error)
                await asyncio.to_thread(keep, file, written)
        return self._parsed(written)

    def _parsed(self, written: str) -> dict[str, str]:
        return parse(written, self.writer.settings.languages, LONGEST)


def open_questioner(settings: Settings, *, dry: bool = False) -> Questioner | None:
    """What writes questions; None if DOCS_QUESTIONS is off. Raises `SettingsError` without a language model."""
    if not settings.questions:
        return None
    writer = open_page_writer(settings, "DOCS_QUESTIONS", PROMPT, _values(settings), dry=dry)
    return Questioner(writer, Path(settings.translations) / PROMPT)


def questions_name(settings: Settings) -> str:
    """What the index remembers of questions: other prompts mean others. Empty where DOCS_QUESTIONS is off."""
    return prompt_name(settings, PROMPT, _values(settings)) if settings.questions else ""


def _values(settings: Settings) -> dict[str, str]:
    prompts = load_prompts(settings.languages, settings.prompts)
    return {"languages": names_of(settings.languages, prompts), "form": form_of(settings.languages, LINE)}


def _shown(chunk: Chunk) -> str:
    """The chunk as the model sees it: without its address, so that a page that moves keeps its questions."""
    headings = [heading for heading in chunk.heading_path if heading != chunk.title]
    return "\n".join(filter(None, (chunk.title, " > ".join(headings)))) + f"\n\n{chunk.text}"
