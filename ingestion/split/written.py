"""Texts that the language model writes about pages while they are indexed: summaries, and the questions that chunks answer (doc2query)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from app.core.errors import ModelError, SettingsError
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.turn import Message
from app.core.types import Chunk, Page
from app.models import Model, open_model
from app.models.protocols import CallOptions
from app.text.blocks import blocks
from app.text.language import form_of, names_of, parse


@dataclass
class KeptTexts:
    """Texts of a language model in files, so that each is paid for once."""

    folder: Path
    _at_work: WeakValueDictionary[Path, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def text(self, name: str, write: Callable[[], Awaitable[str]]) -> str:
        """The text of this name, which is written if it isn't there yet. Raises `SettingsError` if its file can't be used."""
        file = self.folder / name
        async with self._at_work.setdefault(file, asyncio.Lock()):  # copies of a page may be read at the same time
            if kept := await asyncio.to_thread(_read, file):
                return kept
            written = await write()
            await asyncio.to_thread(_keep, file, written)
            return written


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"DOCS_TRANSLATIONS: {file} can't be read: {error}") from error


def _keep(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise SettingsError(f"DOCS_TRANSLATIONS: {file} can't be written: {error}") from error


PARALLEL = 4
CHARACTERS_PER_TOKEN = 3
LONGEST_PROMPT_TOKENS = 500
MOST_FAILURES = 8
"""In a row: then the model isn't asked again in this run, so that an outage doesn't cost a timeout for each text."""

_HEADING = re.compile(r"(?m)^#{1,6}[ \t].*$")
_CUT = "\n\n…\n\n"


class BrokenOff(ModelError):
    """The model's text has no end."""


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

    def system(self, language: str, **values: str) -> str:
        """The prompt in this language, or in the default one if it isn't configured; with these `values`, too."""
        code = language if language in self.settings.languages else self.settings.default_language
        return self.prompts.render(code, self.prompt, **self.values, **values)

    def wanted(self, page: Page) -> str:
        """A fingerprint of what the texts about the page depend on: page and prompt. It doesn't need the Markdown."""
        return hashlib.sha256(f"{page.hash}\x00{self.system(page.language)}".encode()).hexdigest()[:16]

    async def write(self, system: str, text: str, usable: Callable[[str], object] = bool, tokens: int = 0) -> str:
        """Returns what the model writes about the text, of which it may see only the beginning, with room for so many tokens.

        Raises `ModelError`, also for a reply that isn't `usable`: a model that never writes what it should fails, too.
        """
        if self.dry:
            raise ModelError("a dry run asks no model")
        async with self._slots:
            if self._in_a_row >= MOST_FAILURES:
                raise ModelError(f"the model failed {MOST_FAILURES} times in a row and wasn't asked again")
            self.calls += 1
            try:
                written = await self._asked(system, text, usable, tokens)
            except ModelError:
                self.failures, self._in_a_row = self.failures + 1, self._in_a_row + 1
                raise
            self._in_a_row = 0
            return written

    async def close(self) -> None:
        """Close the model's connections."""
        await self.model.close()

    async def _asked(self, system: str, text: str, usable: Callable[[str], object], tokens: int) -> str:
        settings, most = self.settings, self.settings.tuning.llm_max_tokens
        options = CallOptions(temperature=0, max_tokens=max(most, tokens), timeout=settings.llm_timeout)
        room = max(settings.llm_context_window - most - LONGEST_PROMPT_TOKENS, LONGEST_PROMPT_TOKENS)
        text = shortened(text, room * CHARACTERS_PER_TOKEN)
        messages = [Message("system", system), Message("user", text)]
        answer = await self.model.complete(messages, options)
        if not answer.text.strip():
            raise ModelError("the model wrote nothing")
        if answer.finish_reason == "length":
            raise BrokenOff("the model broke off its text (DOCS_TUNING__LLM_MAX_TOKENS)")
        if not usable(answer.text):
            raise ModelError(f"the model wrote no {self.prompt}")
        return answer.text


def open_page_writer(
    settings: Settings, setting: str, prompt: str, values: Mapping[str, str], *, dry: bool
) -> PageWriter:
    """Returns a writer with this prompt. Raises `SettingsError`, which names the setting, without a language model."""
    model = open_model(settings, patient=True)
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
            headings += [heading[0] for heading in _HEADING.finditer(piece) if at + heading.start() >= begin]
        at += len(piece)
    return (text[:begin] + _CUT + "\n".join(headings))[:longest]


QUESTIONS = "questions"
LINE = "…? …? …? …, …, …"
LONGEST = 1200
"""Characters of the questions in one language."""


@dataclass
class Questioner:
    """Gives chunks their questions. What the model wrote is kept by the text and the prompt."""

    writer: PageWriter
    kept: KeptTexts

    async def questioned(self, chunks: Sequence[Chunk]) -> tuple[list[Chunk], str]:
        """The chunks with their questions, and why some have none; empty if all have them."""
        answers = await asyncio.gather(*(self._questions(chunk) for chunk in chunks))
        failed = Counter(answer for answer in answers if isinstance(answer, str))
        note = "; ".join(f"{count} of {len(chunks)} chunks without questions: {why}" for why, count in failed.items())
        return [
            chunk if isinstance(answer, str) else replace(chunk, questions=tuple(answer.items()))
            for chunk, answer in zip(chunks, answers, strict=True)
        ], note

    async def _questions(self, chunk: Chunk) -> Mapping[str, str] | str:
        text, system = _shown(chunk), self.writer.system(chunk.language)
        key = hashlib.sha256(f"{text}\x00{system}".encode()).hexdigest()[:24]
        try:
            return self._parsed(
                await self.kept.text(f"{key}.txt", partial(self.writer.write, system, text, self._parsed))
            )
        except ModelError as error:
            return str(error)

    def _parsed(self, written: str) -> dict[str, str]:
        return parse(written, self.writer.settings.languages, LONGEST)


def open_questioner(settings: Settings, *, dry: bool = False) -> Questioner | None:
    """Returns the writer of questions; None if DOCS_QUESTIONS is off. Raises `SettingsError` without a language model."""
    if not settings.questions:
        return None
    writer = open_page_writer(settings, "DOCS_QUESTIONS", QUESTIONS, _values(settings), dry=dry)
    return Questioner(writer, KeptTexts(Path(settings.translations) / QUESTIONS))


def questions_name(settings: Settings) -> str:
    """Returns the index's name for questions: other prompts mean others. Empty where DOCS_QUESTIONS is off."""
    return prompt_name(settings, QUESTIONS, _values(settings)) if settings.questions else ""


def _values(settings: Settings) -> dict[str, str]:
    prompts = load_prompts(settings.languages, settings.prompts)
    return {"languages": names_of(settings.languages, prompts), "form": form_of(settings.languages, LINE)}


def _shown(chunk: Chunk) -> str:
    """The chunk as the model sees it: without its address, so that a page that moves keeps its questions."""
    headings = [heading for heading in chunk.heading_path if heading != chunk.title]
    return "\n".join(filter(None, (chunk.title, " > ".join(headings)))) + f"\n\n{chunk.text}"


SUMMARISE = "summarise"


@dataclass
class Summariser:
    """Summarises each page once; `known` are the summaries in the index by the hash of their input."""

    writer: PageWriter
    known: dict[str, str]

    async def summarised(self, page: Page) -> Page:
        """The page with its summary, which is empty for an empty page. Raises `ModelError` when the model fails."""
        wanted = self.writer.wanted(page)
        if wanted not in self.known:
            text = f"{page.title}\n\n{page.markdown}"
            system = self.writer.system(page.language)
            written = await self.writer.write(system, text) if page.markdown.strip() else ""
            self.known[wanted] = " ".join(written.split())
        return replace(page, derived=replace(page.derived, summary=self.known[wanted], summary_of=wanted))


def open_summariser(settings: Settings, pages: Iterable[Page], *, dry: bool = False) -> Summariser | None:
    """Returns the summariser, with the summaries that these pages have; None if DOCS_SUMMARIES is off.

    Raises `SettingsError` where it is on without a language model.
    """
    if not settings.summaries:
        return None
    known = {page.derived.summary_of: page.derived.summary for page in pages if page.derived.summary_of}
    return Summariser(open_page_writer(settings, "DOCS_SUMMARIES", SUMMARISE, {}, dry=dry), known)


def summaries_name(settings: Settings) -> str:
    """Returns the index's name for summaries: other prompts mean others. Empty where DOCS_SUMMARIES is off."""
    return prompt_name(settings, SUMMARISE, {}) if settings.summaries else ""
