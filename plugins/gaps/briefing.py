"""The briefing of a morning: the last runs, the figures of a day, what readers wrote, and what to write next. It blocks."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.assistants.file import index_settings, read_assistants
from app.conversations import log_figures as figures
from app.conversations.question_log import SECONDS, Asked, iso, opened_log
from app.conversations.records import DayFigures
from app.core.errors import AssistantError, PromptError, RequestError
from app.core.language import Vocabulary, read_toml, vocabulary, with_words
from app.core.settings import Settings
from app.index import directory_of, open_store
from app.index.run_history import RunHistory, runs_of
from app.routes.admin.problems import failure_of, for_chats, unread_sites
from app.text.redaction import redacted
from plugins.gaps.making import gap_report
from plugins.gaps.records import Cluster

PERIOD = "14d"
"""How long ago the questions were asked that the subjects are made of."""
SHOWN = ("questions", "answered", "refused", "marked", "down")


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of an index: its result as in `RunHistory`, empty if there was none, when it ended, and what failed."""

    index: str
    result: str
    ended_at: str
    failure: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a reader wrote under an answer, without what may belong to a person."""

    id: str
    question: str
    comment: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an editor reads in the morning about a day in UTC, ready for JSON; `subject` and `text` are in the default language."""

    day: str
    figures: DayFigures
    runs: Sequence[LastRun]
    comments: Sequence[Said]
    subjects: Sequence[Cluster]
    subject: str = ""
    text: str = ""

    @property
    def body(self) -> Mapping[str, Any]:
        """The body of a web hook; chats show its `text`, in which signs that call people or hide addresses are replaced."""
        text = "\n".join(map(for_chats, (self.subject, "", *self.text.split("\n"))))
        return {"event": "briefing", **asdict(self), "text": text}


def yesterday(now: float) -> str:
    """The day in UTC before this time, such as 2026-11-29."""
    return iso(now - SECONDS["d"])[:10]


def briefing_of(settings: Settings, day: str, now: float, comments: int = 10, subjects: int = 5) -> Briefing:
    """The briefing about this day, with so many comments and subjects at most. Raises `RequestError` if it is no day, or nothing is kept, and a `DatabaseError` if the database fails."""
    asked = Asked.read(PERIOD, "", now).on(day)
    with opened_log(settings, directory_of(settings)) as log:
        found = next(iter(log.read(figures.by_day, asked)), DayFigures(day, 0, 0, 0, 0, 0, 0))
        commented = log.read(figures.listed, replace(asked, only="commented"), 0, comments)
    words = vocabulary(with_words(settings.languages, settings.prompts), settings.prompts)
    said = [
        Said(one.id, one.text, redacted(comment, words))
        for one in (commented.data if commented else ())
        for comment in one.comments
    ]
    made = Briefing(day, found, asyncio.run(_runs(settings)), said, _subjects(settings, now, words)[:subjects])
    texts = texts_of(settings)
    subject = texts["subject"].format(day=day, **{name: getattr(found, name) for name in SHOWN})
    return replace(made, subject=subject, text="\n".join(_lines(made, texts)))


def _subjects(settings: Settings, now: float, words: Vocabulary) -> Sequence[Cluster]:
    try:
        found = gap_report(settings, Asked.read(PERIOD, "", now)).clusters
    except RequestError:  # nothing was asked
        return ()
    return [replace(one, comments=[redacted(comment, words) for comment in one.comments]) for one in found]


async def _runs(settings: Settings) -> list[LastRun]:
    names = ["", *(table.id for table in read_assistants(settings).indices)]
    found = [await _last_run(name, index_settings(settings, name) if name else settings) for name in names]
    return [run for run in found if run.result or not run.index]


async def _last_run(name: str, settings: Settings) -> LastRun:
    try:
        store = open_store(settings)
        try:
            runs = await runs_of(store)
        finally:
            await store.close()
    except AssistantError as error:
        return LastRun(name, "failed", "", str(error))
    return _told(name, runs)


def _told(name: str, runs: RunHistory) -> LastRun:
    result = max(runs.ended, key=lambda one: runs.ended[one], default="")
    failure = failure_of(runs, None) or unread_sites(runs)
    return LastRun(name, result, iso(runs.ended.get(result, 0.0)), failure)


def texts_of(settings: Settings) -> Mapping[str, Any]:
    """The texts of a briefing in the default language; in English if that language has none."""
    try:
        return read_toml(f"{settings.default_language}/briefing.toml", settings.prompts)
    except PromptError:
        return read_toml("en/briefing.toml", settings.prompts)


def _lines(made: Briefing, texts: Mapping[str, Any]) -> Iterator[str]:
    for run in made.runs:
        name = f" ({run.index})" if run.index else ""
        yield " ".join(filter(None, (f"{texts['run']}{name}:", texts["results"][run.result or "none"], run.ended_at)))
        if run.failure:
            yield f"  {one_line(run.failure)}"
    yield ""
    for name in SHOWN:
        yield f"{texts[name]}: {getattr(made.figures, name)}"
    yield f"\n{texts['comments'] if made.comments else texts['no_comments']}"
    for said in made.comments:
        yield f"- {one_line(said.question)}\n  {one_line(said.comment)}"
    yield f"\n{texts['subjects'] if made.subjects else texts['no_subjects']}"
    for number, one in enumerate(made.subjects, 1):
        yield f"{number}. {one_line(one.name) or texts['unnamed']} ({one.failed})"
        yield from (f"   {one_line(comment)}" for comment in one.comments[:1])


def one_line(text: str) -> str:
    """The text on one line, so that what a reader wrote looks like no line of the briefing."""
    return " ".join(text.split())
