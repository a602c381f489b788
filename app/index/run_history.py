"""The runs of an index: their history, how far one is, and the check that what they left can be read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from app.core.brand import Brand
from app.core.errors import IndexDamaged, StoreError, StoreUnavailable
from app.core.gate import Joined, StillRunning
from app.core.generation import GenerationInfo
from app.core.types import LexicalText, Page, Query
from app.index.protocols import Generation, Store
from app.text.analysis import analyse

RunResult = Literal["published", "partial", "unpublished", "failed"]
RESULTS: tuple[RunResult, ...] = ("published", "partial", "unpublished", "failed")
COUNTED = 14
"""Published runs whose numbers of pages are kept: two weeks of nights."""

STARTED = "RUN_STARTED"
"""Environment variable in which the service tells its runs what started them."""
KEPT = 60
"""Runs that are kept, with MOST_ERRORS errors of LONGEST characters each."""
MOST_ERRORS = 20
LONGEST = 300


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """What started a run (`trigger`: command, nightly, http, start or a word of the operator), who, and its id in the service."""

    trigger: str = "command"
    by: str = ""
    id: str = ""

    @classmethod
    def of_process(cls, trigger: str) -> RunOrigin:
        """That of the run of this process: the service tells its own runs what they are."""
        told = os.environ.get(STARTED)
        return cls(**json.loads(told)) if told else cls(trigger)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variable that tells a process."""
        return {STARTED: json.dumps(asdict(self))}


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended. `began` is in Unix seconds; `counts` are pages by outcome, `generation` is what it published, if anything changed.

    `failed_sources` are the sites that it couldn't read, each with the reason; `errors` has them, too.
    """

    origin: RunOrigin
    began: float
    seconds: float
    result: RunResult
    counts: Mapping[str, int] = field(default_factory=dict)
    generation: int | None = None
    errors: tuple[str, ...] = ()
    failed_sources: tuple[str, ...] = ()


def _kept(errors: Iterable[str]) -> tuple[str, ...]:
    return tuple(error[:LONGEST] for error in errors)[:MOST_ERRORS]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A page that isn't in the index because of its language, so that it is read again only when it changes.

    `mark` stands for the settings by which it was read; `note` is what the report says of its language.
    """

    url: str
    mark: str
    etag: str
    last_modified: str
    language: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceRuns:
    """Lessons of runs about a sitemap, directory or reader. `read` is when one last read all of it, in Unix seconds.

    `proofs` are pages whose text changed together with their lastmod, since a text last changed without it; that happened in
    `lies` runs. `pages` is how many pages the index had of it after each of the last runs that were published, `left_out` are those that it hasn't.
    """

    read: float = 0.0
    proofs: int = 0
    lies: int = 0
    pages: tuple[int, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def with_pages(self, count: int, *, accepted: bool) -> SourceRuns:
        """A copy with a published run that left so many pages; what was before an `accepted` loss no longer counts."""
        return replace(self, pages=((() if accepted else self.pages) + (count,))[-COUNTED:])


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Number of runs with each result, the time of the last one of each in Unix seconds, and the last run's duration.

    `sources` are those of the index, by the address that `Page.source` has, `last` are the last runs, the newest first.
    `partial` means published, but pages or sources failed; `unpublished` that the run left the index as it was, because
    too much was missing or another run was writing; `failed` that it ended with any other error. `brand` is what the site says of itself.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    sources: Mapping[str, SourceRuns] = field(default_factory=dict)
    last: tuple[EndedRun, ...] = ()
    brand: Brand = field(default_factory=Brand)

    def with_run(self, run: EndedRun, sources: Mapping[str, SourceRuns] | None = None) -> RunHistory:
        """A copy with a run that has ended now, and that learned this about the sources of the index."""
        counts = {**self.counts, run.result: self.counts.get(run.result, 0) + 1}
        ended = {**self.ended, run.result: time.time()}
        known = self.sources if sources is None else sources
        kept = replace(run, errors=_kept(run.errors), failed_sources=_kept(run.failed_sources))
        last = (kept, *self.last)[:KEPT]
        return RunHistory(counts, ended, round(run.seconds, 3), known, last, self.brand)

    @property
    def failed_sources(self) -> tuple[str, ...]:
        """The sites that the last published run couldn't read, each with the reason: their pages are older."""
        return next((run.failed_sources for run in self.last if run.result in ("published", "partial")), ())

    def last_ok(self, page: Page) -> str:
        """Returns the time when a run last found the page as the index has it, in ISO 8601; empty if that isn't known."""
        read = self.sources.get(page.fetch.source, SourceRuns()).read
        if page.fetch.stale_since or not read:
            return page.fetch.last_ok
        return max(page.fetch.last_ok, datetime.fromtimestamp(read, UTC).isoformat(timespec="seconds"))


_HISTORY = TypeAdapter(RunHistory)


async def runs_of(store: Store) -> RunHistory:
    """The runs of this store so far. Raises `IndexDamaged` if they can't be read."""
    values = await store.kept("runs")
    try:
        return _HISTORY.validate_python(values)
    except ValidationError as error:
        raise IndexDamaged(
            f"What is kept with the index as its runs (runs.json) is no history of them ({error.errors()[0]['msg']}). Delete it:"
            " only figures depend on it."
        ) from error


async def write_runs(store: Store, runs: RunHistory) -> None:
    """Replace them; the index stays as it is."""
    await store.keep("runs", asdict(runs))


async def readable_runs_of(store: Store) -> RunHistory:
    """The runs of this store so far; empty also if they can't be read because of a damage."""
    try:
        return await runs_of(store)
    except IndexDamaged:
        return RunHistory()


async def as_last_read(store: Store, pages: Iterable[Page]) -> tuple[Page, ...]:
    """The pages with the time of the last run that found them as they are: their records aren't written for that."""
    runs = await readable_runs_of(store)
    return tuple(replace(page, fetch=replace(page.fetch, last_ok=runs.last_ok(page))) for page in pages)


async def add_run(store: Store, run: EndedRun, sources: Mapping[str, SourceRuns] | None = None) -> None:
    """Keep a run that has ended now, and what it learned."""
    await write_runs(store, (await readable_runs_of(store)).with_run(run, sources))


FRESH = 5.0  # seconds that a result is valid
FIRST_WAIT = 5.0  # seconds to wait for the first result
LATER_WAIT = 0.5  # seconds to wait for a later result; then the previous one is returned


async def check_readable(generation: Generation) -> None:
    """Raises `StoreError` that names what can't be read."""
    try:
        lacking = await _damage(generation)
    except StoreError:
        raise
    except Exception as error:  # corrupt rows may fail anywhere
        raise IndexDamaged(f"What the index has isn't what was written to it: {error!r}.") from error
    if lacking:
        raise IndexDamaged(lacking)


async def _damage(generation: Generation) -> str:
    info = generation.info
    if not info.chunks:
        return ""
    near = (await generation.search(Query((), [1.0] * info.recipe.dimension, depth=1))).vector
    chunks = await generation.fetch([candidate.id for candidate in near])
    if not chunks:
        return f"The index should have {info.chunks} chunks, but a search finds none of them."
    text, language = chunks[0].embedded_text[:500], chunks[0].language
    words = Query((LexicalText(language, text),), depth=1)
    if tokens := analyse(text, language):
        if not (await generation.search(words)).lexical:
            return "A search for a chunk's own words finds nothing."
        if not any((await generation.frequencies(tokens)).values()):
            return "The words of the index have none of a chunk's own."
    page = await generation.page(chunks[0].url)
    return "" if page else f"The page {chunks[0].url} has chunks, but no record."


@dataclass(slots=True)
class Checked:
    """What checks of one generation found: the `problem` that keeps questions from being answered, and what is `lost` although
    they are answered; empty for none.
    """

    of: GenerationInfo
    problem: str = ""
    lost: str = ""
    until: float | None = None
    looking: Joined[None] = field(default_factory=Joined)


class Checkup:
    """Checks the live generation of a store, at most every few seconds and only on demand.

    `index` is the name of the index; empty for the configured one.
    """

    def __init__(self, index: str = "") -> None:
        self._index = index
        self._last: Checked | None = None

    async def of(self, generation: Generation) -> Checked:
        """What is found in this generation. Waits only briefly; what a slow check finds is returned by a later call."""
        checked = self._last
        if checked is None or checked.of != generation.info:
            checked = self._last = Checked(generation.info)
        if checked.until is None or time.monotonic() >= checked.until:
            with suppress(StillRunning):
                patience = FIRST_WAIT if checked.until is None else LATER_WAIT
                await checked.looking.get(partial(self._look, generation, checked), patience)
        return checked

    async def _look(self, generation: Generation, checked: Checked) -> None:
        problem = lost = ""
        try:
            await check_readable(generation)
            lost = await generation.lost()
        except StoreUnavailable as error:
            problem = str(error)
        except StoreError as error:
            problem = damage_message(error, self._index)
        again = f"Its words are counted at each start instead. `{_run(self._index)}` writes them again."
        checked.problem, checked.lost = problem, lost and f"{lost} {again}"
        checked.until = time.monotonic() + FRESH


def unreadable(what: str, error: Exception) -> StoreError:
    """The error for a list of generations that raised this: `IndexDamaged`, which a run repairs, unless a later version wrote it."""
    if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
        return StoreError(
            f"{what} was written by a later version of this program ({error}): "
            "use that version, restore a backup, or choose another index in DOCS_STORE."
        )
    return IndexDamaged(f"{what} is damaged ({error!r}): restore it from a backup, or index the sites again.")


def damage_message(error: StoreError, index: str = "") -> str:
    """The message for operators, with the command that repairs the index."""
    return f"{error} `{_run(index, ' --rebuild')}` builds it again."


def _run(index: str, options: str = "") -> str:
    return f"docs-assistant ingest{options}" + (f" --index {index}" if index else "")


FILE = "reading.json"
STILL_READING = 120.0
"""Seconds after which a file was left by a run that was killed."""


def tell_reading(directory: Path, done: int, total: int, minutes: int, *, began: float, trigger: str = "") -> None:
    """Write how many pages of how many a run has read, and how many minutes the rest takes. A file that can't be written costs only this.

    The run `began` to read in these Unix seconds; `trigger` is what started the run.
    """
    told = {"done": done, "total": total, "minutes": max(1, minutes), "trigger": trigger, "began": began}
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        new = directory / f"{FILE}.{os.getpid()}"
        new.write_text(json.dumps(told), encoding="utf-8")
        new.replace(directory / FILE)


def forget_reading(directory: Path) -> None:
    """Remove the file, at the end of a run."""
    with suppress(OSError):
        (directory / FILE).unlink(missing_ok=True)


def reading(directory: Path | None) -> Mapping[str, int] | None:
    """`done` and `total` pages and the `minutes` left of the run at this index; None if none is known."""
    told = run_reading(directory)
    return None if told is None else {name: told[name] for name in ("done", "total", "minutes")}


def run_reading(directory: Path | None) -> Mapping[str, Any] | None:
    """The same, with the `trigger` of the run, and when it `began` to read, in Unix seconds."""
    if directory is None:
        return None
    try:
        if time.time() - (directory / FILE).stat().st_mtime > STILL_READING:
            return None
        told = json.loads((directory / FILE).read_text(encoding="utf-8"))
        numbers = {name: int(told[name]) for name in ("done", "total", "minutes")}
        return {**numbers, "trigger": str(told["trigger"]), "began": float(told["began"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None
