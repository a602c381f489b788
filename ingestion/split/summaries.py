"""Summaries of pages by the language model. Their vectors help to find the pages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.core.settings import Settings
from app.core.types import Page
from ingestion.split.page_writer import PageWriter, open_page_writer, prompt_name

PROMPT = "summarise"


@dataclass
class Summariser:
    """Summarises each page once; `known` are the summaries in the index by the hash of their input."""

    writer: PageWriter
    known: dict[str, str]

    def wanted(self, page: Page) -> str:
        """The hash of the input of the page's summary: page and prompt. It doesn't need the Markdown."""
        return hashlib.sha256(f"{page.hash}\x00{self.writer.system(page.language)}".encode()).hexdigest()[:16]

    async def summarised(self, page: Page) -> Page:
        """The page with its summary, which is empty for an empty page. Raises `ModelError` when the model fails."""
        wanted = self.wanted(page)
        if wanted not in self.known:
            text = f"{page.title}\n\n{page.markdown}"
            written = await self.writer.write(page.language, text) if page.markdown.strip() else ""
            self.known[wanted] = " ".join(written.split())
        return replace(page, summary=self.known[wanted], summary_of=wanted)


def open_summariser(settings: Settings, pages: Iterable[Page], *, dry: bool = False) -> Summariser | None:
    """What summarises, with the summaries that these pages have; None if DOCS_SUMMARIES is off.

    Raises `SettingsError` where it is on without a language model.
    """
    if not settings.summaries:
        return None
    known = {page.summary_of: page.summary for page in pages if page.summary_of}
    return Summariser(open_page_writer(settings, "DOCS_SUMMARIES", PROMPT, {}, dry=dry), known)


def summaries_name(settings: Settings) -> str:
    """What the index remembers of summaries: other prompts mean others. Empty where DOCS_SUMMARIES is off."""
    return prompt_name(settings, PROMPT, {}) if settings.summaries else ""
