"""What the language model writes about pages and their chunks while they are indexed: a few calls at once, counted."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.core.errors import ModelError, SettingsError
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.turn import Message
from app.models import Model, open_model
from app.models.protocols import CallOptions
from app.text.fences import blocks

PARALLEL = 4
CHARACTERS_PER_TOKEN = 3
LONGEST_PROMPT_TOKENS = 500
MOST_FAILURES = 8
"""In a row: then the model isn't asked again in this run, so that an outage doesn't cost a timeout for each text."""

_HEADING = re.compile(r"(?m)^#{1,6}[ \t].*$")
_CUT = "\n\n…\n\n"


@dataclass
class PageWriter:
    """Asks the language model by one prompt, in the language of each text; `values` are for the prompt.

    `calls` and `failures` count the whole run. A `dry` one asks nothing.
    """

    settings: Settings
    model: Model
    prompts: Prompts
    prompt: str
    values: Mapping[str, str] = field(default_factory=dict)
    dry: bool = False
    calls: int = 0
    failures: int = 0
    _in_a_row: int = 0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL))

    def system(self, language: str) -> str:
        """The prompt in this language, or in the default one if it isn't configured."""
        code = language if language in self.settings.languages else self.settings.default_language
        return self.prompts.render(code, self.prompt, **self.values)

    async def write(self, language: str, text: str, usable: Callable[[str], object] = bool) -> str:
        """What the model writes about the text, of which it may see only the beginning.

        Raises `ModelError`, also for a reply that isn't `usable`: a model that never writes what it should fails, too.
        """
        if self.dry:
            raise ModelError("a dry run asks no model")
        async with self._slots:
            if self._in_a_row >= MOST_FAILURES:
                raise ModelError(f"the model failed {MOST_FAILURES} times in a row and wasn't asked again")
            self.calls += 1
            try:
                written = await self._asked(language, text, usable)
            except ModelError:
                self.failures, self._in_a_row = self.failures + 1, self._in_a_row + 1
                raise
            self._in_a_row = 0
            return written

    async def close(self) -> None:
        """Close the model's connections."""
        await self.model.close()

    async def _asked(self, language: str, text: str, usable: Callable[[str], object]) -> str:
        settings = self.settings
        options = CallOptions(temperature=0, max_tokens=settings.llm_max_tokens, timeout=settings.llm_timeout)
        tokens = settings.llm_context_window - settings.llm_max_tokens - LONGEST_PROMPT_TOKENS
        text = shortened(text, max(tokens, LONGEST_PROMPT_TOKENS) * CHARACTERS_PER_TOKEN)
        messages = [Message("system", self.system(language)), Message("user", text)]
        answer = await self.model.complete(messages, options)
        if not answer.text.strip():
            raise ModelError("the model wrote nothing")
        if answer.finish_reason == "length":
            raise ModelError("the model broke off its text (DOCS_LLM_MAX_TOKENS)")
        if not usable(answer.text):
            raise ModelError(f"the model wrote no {self.prompt}")
        return answer.text


def open_page_writer(
    settings: Settings, setting: str, prompt: str, values: Mapping[str, str], *, dry: bool
) -> PageWriter:
    """What writes by this prompt. Raises `SettingsError`, which names the setting, without a language model."""
    model = open_model(settings)
    if model is None:
        raise SettingsError(f"{setting} needs a language model: set DOCS_LLM_URL and DOCS_LLM_MODEL, or turn it off.")
    return PageWriter(settings, model, load_prompts(settings.languages, settings.prompts), prompt, values, dry)


def prompt_name(settings: Settings, prompt: str, values: Mapping[str, str]) -> str:
    """The name and a fingerprint of a prompt in all languages: other prompts mean other texts."""
    prompts = load_prompts(settings.languages, settings.prompts)
    texts = [(code, prompts.render(code, prompt, **values)) for code in sorted(settings.languages)]
    return f"{prompt}-{hashlib.sha256(repr(texts).encode()).hexdigest()[:12]}"


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and as many of the later headings as there is room for."""
    if len(text) <= longest:
        return text
    begin, at, headings = longest * 3 // 4, 0, list[str]()
    for code, piece in blocks(text):
        if not code:
            headings += [found[0] for found in _HEADING.finditer(piece) if at + found.start() >= begin]
        at += len(piece)
    return (text[:begin] + _CUT + "\n".join(headings))[:longest]
