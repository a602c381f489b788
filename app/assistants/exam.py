"""The exam of a language model about pages that exist nowhere, so that its answers are its own reading: what follows, and when it is taken again.

Readers meet a model behind all the checks of an answer, so the exam asks through the same steps, and judges what is left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from app.core.errors import AssistantError, ModelError, SettingsError
from app.core.language import has_file, path_of, read_toml, validated
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Done, Message, Question, Reasoning, Request, Text, Turn, Usage
from app.core.types import Chunk, Hit
from app.index import directory_of
from app.index.embedded.pointer import write_kept
from app.models import Model, open_model
from app.models.guarded import LEAST_READ
from app.models.protocols import CallOptions
from app.pipeline.conversation import reads_little, room_for_pages, with_patience, within_window
from app.pipeline.rewriting import speak_of
from app.pipeline.runner import run
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.retrieve import Keywords, Refine
from app.pipeline.steps.synthesize import Synthesize
from app.text.language import LanguageDetector

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.assistants")

Form = Literal["full", "short"]
Grade = Literal["full", "short", "quotes"]

LEAST_RIGHT, MOST_INVENTED = 0.8, 0.1
"""Shares of the answers with which readers are better off than with quotations, which invent nothing. A model of 1.5 billion parameters
has .75 and .17 in English, .5 and .5 in Czech; in its place, quotations helped readers more in 12 of 20 questions."""
_SHORT: Sequence[Form] = ("short",)
_BOTH: Sequence[Form] = ("full", "short")
REWRITES = 0.8  # least share of questions that are rewritten well
FILE, SHEET = "exams.json", "exam.toml"
SITE = "https://docs.example"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Page(_Strict):
    title: str
    text: str


class _Ask(_Strict):
    question: str
    answer: tuple[str | tuple[str, ...], ...] = ()


class _Rewrite(_Strict):
    question: str
    before: str = ""


class _Sheet(_Strict):
    """The exam in a language: `prompts/<language>/exam.toml`."""

    page: tuple[_Page, ...]
    ask: tuple[_Ask, ...]
    rewrite: tuple[_Rewrite, ...] = ()
    keywords: tuple[_Rewrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Marks:
    """What a model did in one language, in numbers of questions.

    `right` answers have what is asked, or refuse where the pages don't answer; `invented` ones state something else, `silent` ones
    refuse what the pages answer. `unsupported` are statements that no page proves.
    """

    asked: int = 0
    right: int = 0
    invented: int = 0
    silent: int = 0
    unsupported: int = 0
    rewrites: int = 0
    rewritten: int = 0
    searches: int = 0
    keywords: int = 0

    @property
    def passed(self) -> bool:
        """True if readers are better off with such answers than with quotations."""
        return self.right >= LEAST_RIGHT * self.asked and self.invented <= MOST_INVENTED * self.asked


@dataclass(frozen=True, slots=True)
class Exam:
    """The result of a model: the `grades` by language, the `form` of the prompt, and the steps that it isn't asked for, `left_out`.

    `reads` and `writes` are tokens a second, 0 if the server counts none; `characters` are those of a prompt that it reads a second, 0 if
    that couldn't be measured. `window` is in tokens, 0 if the server says none; `fingerprint` is what it says of the model. `answers` has each question with what a reader would get.
    """

    model: str
    at: str
    form: Form
    grades: Mapping[str, Grade]
    marks: Mapping[str, Marks]
    left_out: tuple[str, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    characters: float = 0.0
    window: int = 0
    fingerprint: str = ""
    answers: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    @property
    def quoted(self) -> frozenset[str]:
        """The languages in which readers get quotations: the model invents more than it answers, or answers too little."""
        return frozenset(code for code, grade in self.grades.items() if grade == "quotes")

    @property
    def said(self) -> str:
        """The result in a line."""
        forms = {"full": "full prompt", "short": "short prompt without helper steps", "quotes": "quotations only"}
        parts = [
            f"{code}: {forms[grade]} ({marks.right} of {marks.asked} right, {marks.invented} invented)"
            for code, grade in self.grades.items()
            for marks in [self.marks[code]]
        ]
        asked = self.form == "full" and len(self.quoted) < len(self.grades)
        left = f"; without {', '.join(self.left_out)}" if self.left_out and asked else ""
        return f"{'; '.join(parts)}{left}"


async def take(model: Model, settings: Settings, prompts: Prompts, detector: LanguageDetector) -> Exam:
    """The exam of the model in all languages that have one. Raises `ModelError` if it doesn't answer, or fails in several questions."""
    began = time.perf_counter()
    await model.complete([Message("user", "Say OK.")], CallOptions(max_tokens=16, timeout=settings.llm_timeout))
    if probe := model.breakers[0].probe:
        await probe.look()  # the list tells the window, also of a server that has loaded the model for that call
    candidate = _Candidate(model, settings, prompts, detector)
    speeds = await candidate.measured()  # of a model that is loaded
    candidate.take_time(speeds)
    grades, marks = dict[str, Grade](), dict[str, Marks]()
    for code in (code for code in prompts.languages if has_sheet(code, settings)):
        grades[code], marks[code] = await candidate.examined(code)
    written = [code for code, grade in grades.items() if grade != "quotes"]
    short = any(grade == "short" for grade in grades.values())
    return Exam(
        model.name,
        datetime.now(UTC).isoformat(timespec="seconds"),
        "short" if short else "full",
        grades,
        marks,
        _left_out([marks[code] for code in written], short=short),
        candidate.usage.total,
        round(time.perf_counter() - began, 1),
        round(speeds.reads, 1),
        round(speeds.writes, 1),
        round(speeds.characters, 1),
        model.window,
        await _fingerprint(model) or "",
        candidate.answers,
    )


class Speeds(NamedTuple):
    """Tokens a second that a model reads and writes, and characters a second that it reads; what isn't known is 0."""

    reads: float = 0.0
    writes: float = 0.0
    characters: float = 0.0


async def _fingerprint(model: Model) -> str | None:
    """See `Model.fingerprint`; None if the server doesn't answer."""
    try:
        return await model.fingerprint()
    except ModelError:
        return None


def has_sheet(code: str, settings: Settings) -> bool:
    """True if a language has an exam."""
    return has_file(f"{code}/{SHEET}", settings.prompts)


def _left_out(marks: Sequence[Marks], *, short: bool) -> tuple[str, ...]:
    """The steps that the model isn't asked for."""
    refines = bool(marks) and not short and all(one.rewritten >= REWRITES * one.rewrites for one in marks)
    searches = bool(marks) and not short and all(one.keywords == one.searches for one in marks)
    failed = {"refine": not refines, "keywords": not searches, "analyze": not (refines and searches)}
    return tuple(name for name, out in failed.items() if out)


class _Candidate:
    """A model that is examined, with what it wrote."""

    def __init__(self, model: Model, settings: Settings, prompts: Prompts, detector: LanguageDetector) -> None:
        self._model, self._settings, self._prompts, self._detector = model, settings, prompts, detector
        self.usage = Usage()
        self.answers = dict[str, list[tuple[str, str]]]()

    async def measured(self) -> Speeds:
        """The speeds of the model, from the times of the first and the last piece of one stream; all 0 if that fails.

        No cache of the server knows the prompt: each of its parts begins with a number that is drawn. Answers tell no speeds: their
        prompts begin alike, and the checks hold their text back.
        """
        default = self._settings.default_language
        code = default if has_sheet(default, self._settings) else "en"
        sheet, turn = sheet_of(code, self._settings.prompts), Turn(_request(""), asked=Question("", code))
        text = "\n\n".join(page.text.strip() for page in sheet.page)
        most = min(2 * LEAST_READ, room_for_pages(turn, within_window(self._settings, self._model), self._prompts))
        parts = "\n\n".join(f"{uuid4().hex}\n\n{text}" for _ in range(0, most, len(text)))
        asked = [Message("user", f"{parts[:most]}\n\nWrite all of this again, word for word.")]
        clock, first, last, usage = asyncio.get_running_loop().time, 0.0, 0.0, Usage()
        began, options = clock(), CallOptions(temperature=0, max_tokens=100, timeout=600.0)
        try:
            async with aclosing(self._model.stream(asked, options)) as events:
                async for event in events:
                    if isinstance(event, Text | Reasoning):
                        last = clock() - began
                        first = first or last
                    elif isinstance(event, Usage):
                        usage += event
        except ModelError as error:
            log.warning(LogMessage("speed not measured", model=self._model.name, error=error))
            return Speeds()
        self.usage += usage
        written, writing = usage.completion_tokens - 1, last - first  # the first token ends the reading
        return Speeds(
            usage.prompt_tokens / first if first else 0.0,
            written / writing if written > 0 and writing else 0.0,
            len(asked[0].content) / first if first else 0.0,
        )

    def take_time(self, speeds: Speeds) -> None:
        """Ask from now on with the time-out that readers' questions get."""
        own, speed = self._settings, {"characters": speeds.characters, "writes": speeds.writes}
        self._settings = with_patience(own, self._prompts, own, **speed)

    async def examined(self, code: str) -> tuple[Grade, Marks]:
        """The grade of the model in a language; the form that the settings name, or else the short one too."""
        sheet = sheet_of(code, self._settings.prompts)
        marks, forms = Marks(), _SHORT if reads_little(self._settings) else _BOTH
        for form in forms:
            marks = await self._answered(code, sheet, self._settings.model_copy(update={"llm_form": form}))
            if marks.passed:
                return form, await self._helped(code, sheet, marks) if form == "full" else marks
        return "quotes", marks

    async def _answered(self, code: str, sheet: _Sheet, settings: Settings) -> Marks:
        hits = tuple(
            Hit(
                Chunk(f"exam-{n}", "exam", f"{SITE}/{n}", 0, f"# {page.title}\n\n{page.text.strip()}", code, page.title)
            )
            for n, page in enumerate(sheet.page, start=1)
        )
        write, cite = Synthesize(self._prompts, settings, self._model), Cite(self._prompts, "none", "mark", None)
        found, self.answers[code] = dict.fromkeys(("right", "invented", "silent"), 0), []
        unsupported, failures = 0, list[str]()
        for ask in sheet.ask:
            turn = await run(((write,),), Turn(_request(ask.question), None, Question(ask.question, code), hits=hits))
            # what readers of a slow model are shown meanwhile is no answer of it
            text, done = await self._shown(await run(((cite,),), turn.changed(quotation=None)))
            self.answers[code].append((ask.question, text))
            unsupported += len(done.unsupported)
            found[_judged(ask, text, done)] += 1
            failures += [call.error for call in turn.calls.ended if call.error not in {"", "cancelled"}][:1]
            if len(failures) > 1:  # which tells nothing of how it answers
                raise ModelError(f"{self._model.name} failed in its exam: {failures[-1]}")
        return Marks(asked=len(sheet.ask), unsupported=unsupported, **found)

    async def _shown(self, turn: Turn) -> tuple[str, Done]:
        assert turn.events is not None
        text, done = "", Done()
        async with aclosing(turn.events) as events:
            async for event in events:
                if isinstance(event, Text):
                    text += event.text
                elif isinstance(event, Done):
                    done = event
        self.usage += turn.calls.usage
        return text, done

    async def _helped(self, code: str, sheet: _Sheet, marks: Marks) -> Marks:
        """The marks with those of the helper steps."""
        refine = Refine(self._model, self._prompts, self._settings, self._detector)
        keywords = Keywords(self._model, self._prompts, self._settings)
        rewritten = [await self._changes(refine, code, one) for one in sheet.rewrite]
        searched = [await self._changes(keywords, code, one) for one in sheet.keywords]
        spoken = [
            bool(found) and speak_of(found["keywords"], one.question, self._prompts.language(code))
            for one, found in zip(sheet.keywords, searched, strict=True)
        ]
        return replace(
            marks,
            rewrites=len(rewritten),
            rewritten=sum(map(bool, rewritten)),
            searches=len(spoken),
            keywords=sum(spoken),
        )

    async def _changes(self, step: Refine | Keywords, code: str, one: _Rewrite) -> Mapping[str, Any]:
        turn = Turn(_request(one.before, one.question), None, Question(one.question, code, False, one.before))
        try:
            async with asyncio.timeout(2 * self._settings.tuning.helper_timeout):
                return await step(turn)
        except (ModelError, TimeoutError):
            return {}
        finally:
            self.usage += turn.calls.usage


def _request(*questions: str) -> Request:
    return Request(tuple(Message("user", text) for text in questions if text), id="exam")


def _judged(ask: _Ask, text: str, done: Done) -> Literal["right", "invented", "silent"]:
    """What the answer is worth to a reader. A quotation in place of an answer is nobody's invention."""
    if done.refused or done.extractive:
        return "silent" if ask.answer else "right"
    small = text.casefold()
    wanted = ((one,) if isinstance(one, str) else one for one in ask.answer)
    said = bool(ask.answer) and all(any(form.casefold() in small for form in forms) for forms in wanted)
    return "right" if said and done.language in {"", "corrected"} else "invented"


def sheet_of(code: str, folder: str) -> _Sheet:
    """The exam in a language, of the operator's folder or the shipped one. Raises `PromptError` if it is invalid or missing."""
    name = f"{code}/{SHEET}"
    return validated(_Sheet, read_toml(name, folder), path_of(name, folder))


# ---- kept results --------------------------------------------------------------------------------

_KEPT = TypeAdapter(dict[str, Exam])


def _file(settings: Settings) -> Path:
    return (directory_of(settings) or Path("data")) / FILE


def kept(settings: Settings) -> Mapping[str, Exam]:
    """The last exam of each model, by its name. Raises `SettingsError` if the file can't be read."""
    path = _file(settings)
    try:
        return _KEPT.validate_json(path.read_bytes()) if path.is_file() else {}
    except (OSError, ValidationError) as error:
        raise SettingsError(
            f"The results of exams in {path} can't be read ({type(error).__name__}). Delete the file, and run"
            " `docs-assistant check --exam` again."
        ) from error


def keep(exam: Exam, settings: Settings) -> Path:
    """Keep the result in place of the model's last one; returns the file. Raises `StoreError` if it can't be written."""
    path = _file(settings)
    write_kept(path, {name: asdict(one) for name, one in {**kept(settings), exam.model: exam}.items()})
    return path


# ---- another model behind the same address -------------------------------------------------------


@dataclass
class Renewal:
    """Examines the configured model once after a start, if another one had the last exam: it has no result under its name, or the
    server says something else of it than then. Where no exam was ever taken, none is: it costs tokens.

    `follow` is called with their time-out once the assistants heed the new result.
    """

    assistants: Assistants
    settings: Settings
    follow: Callable[[float], None]

    async def run(self) -> None:
        """Take the exam if it is due. One that fails leaves everything as it was until the next start, which is logged."""
        if not (self.settings.tuning.heed_exam and self.assistants.model):
            return
        name = self.assistants.model.name
        try:
            if why := await self._why(self.assistants.model):
                log.info(LogMessage("exam begins", model=name, why=why))
                exam = await self._taken()
                self.assistants.heed(exam)
                self.follow(self.assistants.llm_timeout)
                log.info(LogMessage("exam taken", model=name, exam=exam.said, seconds=exam.seconds, tokens=exam.tokens))
        except Exception as error:  # readers are answered as before
            log.warning(
                LogMessage("exam not taken", model=name, error=error), exc_info=not isinstance(error, AssistantError)
            )

    async def _why(self, model: Model) -> str:
        """Why the model is to be examined; empty if it isn't. Waits for its server."""
        if not (exams := self.assistants.exams):
            return ""
        fingerprint = await _fingerprint(model)
        while fingerprint is None:
            await asyncio.sleep(60)
            fingerprint = await _fingerprint(model)
        if (last := exams.get(model.name)) is None:
            return f"the last exam was that of {', '.join(exams)}"
        if fingerprint and last.fingerprint and fingerprint != last.fingerprint:
            return f"the server had {last.fingerprint} and has {fingerprint}"
        return ""

    async def _taken(self) -> Exam:
        """The result, which is kept. The model is another object than the one of readers, whose breaker and speed it would change."""
        tools, model = self.assistants.tools, open_model(self.settings, patient=True)
        assert model
        try:
            exam = await take(model, self.settings, tools.prompts, tools.detector)
        finally:
            await model.close()
        keep(exam, self.settings)
        return exam
