"""Summaries of pages by the language model. Their vectors help to find the pages."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from app.core.errors import ModelError, SettingsError
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.turn import Message
from app.core.types import Page
from app.models import Model, open_model
from app.models.protocols import CallOptions
from app.text.fences import blocks

PROMPT = "summarise"
PARALLEL = 4
CHARACTERS_PER_TOKEN = 3
LONGEST_PROMPT_TOKENS = 500
_HEADING = re.compile(r"(?m)^#{1,6}[ \t].*$")
_CUT = "\n\n…\n\n"


@dataclass
class Summariser:
    """Summarises each page once; `known` are the summaries in the index by the hash of their input."""

    settings: Settings
    model: Model
    prompts: Prompts
    known: dict[str, str]
    calls: int = 0
    dry: bool = False
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL))

    def wanted(self, page: Page) -> str:
        """The hash of the input of the page's summary: page and prompt. It doesn't need the Markdown."""
        return hashlib.sha256(f"{page.hash}\x00{self._prompt(page)}".encode()).hexdigest()[:16]

    async def summarised(self, page: Page) -> Page:
        """The page with its summary, which is empty for an empty page. Raises `ModelError` when the model fails."""
        wanted = self.wanted(page)
        if wanted not in self.known and self.dry:
            raise ModelError("a dry run summarises nothing")
        if wanted not in self.known:
            self.known[wanted] = await self._ask(page) if page.markdown.strip() else ""
        return replace(page, summary=self.known[wanted], summary_of=wanted)

    async def close(self) -> None:
        """Close the model's connections."""
        await self.model.close()

    async def _ask(self, page: Page) -> str:
        settings = self.settings
        options = CallOptions(temperature=0, max_tokens=settings.llm_max_tokens, timeout=settings.llm_timeout)
        tokens = settings.llm_context_window - settings.llm_max_tokens - LONGEST_PROMPT_TOKENS
        text = _shortened(f"{page.title}\n\n{page.markdown}", max(tokens, LONGEST_PROMPT_TOKENS) * CHARACTERS_PER_TOKEN)
        async with self._slots:
            self.calls += 1
            answer = await self.model.complete([Message("system", self._prompt(page)), Message("user", text)], options)
        summary = " ".join(answer.text.split())
        if not summary:
            raise ModelError("the model wrote nothing")
        if answer.finish_reason == "length":
            raise ModelError("the model broke off its summary (DOCS_LLM_MAX_TOKENS)")
        return summary

    def _prompt(self, page: Page) -> str:
        code = page.language if page.language in self.settings.languages else self.settings.default_language
        return self.prompts.render(code, PROMPT)


def open_summariser(settings: Settings, pages: Iterable[Page], *, dry: bool = False) -> Summariser | None:
    """What summarises, with the summaries that these pages have; None where DOCS_SUMMARIES is off.

    Raises `SettingsError` where it is on without a language model.
    """
    if not settings.summaries:
        return None
    model = open_model(settings)
    if model is None:
        raise SettingsError(
            "DOCS_SUMMARIES needs a language model: set DOCS_LLM_URL and DOCS_LLM_MODEL, or turn it off."
        )
    known = {page.summary_of: page.summary for page in pages if page.summary_of}
    return Summariser(settings, model, load_prompts(settings.languages, settings.prompts), known, dry=dry)


def summaries_name(settings: Settings) -> str:
    """What the index remembers of summaries: other prompts mean others. Empty where DOCS_SUMMARIES is off."""
    if not settings.summaries:
        return ""
    prompts = load_prompts(settings.languages, settings.prompts)
    texts = [(code, prompts.render(code, PROMPT)) for code in sorted(settings.languages)]
    return f"{PROMPT}-{hashlib.sha256(repr(texts).encode()).hexdigest()[:12]}"


def _shortened(text: str, longest: int) -> str:
    """The text, or its beginning and as many of the later headings as there is room for."""
    if len(text) <= longest:
        return text
    begin, at, headings = longest * 3 // 4, 0, list[str]()
    for code, piece in blocks(text):
        if not code:
            headings += [found[0] for found in _HEADING.finditer(piece) if at + found.start() >= begin]
        at += len(piece)
    return (text[:begin] + _CUT + "\n".join(headings))[:longest]
