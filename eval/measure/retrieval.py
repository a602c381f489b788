"""Searches every question of a set, without writing an answer, and measures the found pages, chunks and quotations."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from app.assistants.assistant import Assistant, Assistants
from app.core.errors import AssistantError
from app.core.turn import Done, Question, Request, StepRecord, Text, Turn
from app.core.types import Hit, Query
from app.index.protocols import Generation
from app.pipeline import runner
from app.pipeline.registry import upto
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.result import AVOIDED, CONVERSATIONS, PROVED, RETRIEVAL, Outcome, Result
from eval.measure.rows import CURVE, MEASURES, Estimate, Ranks, at, intervals, ranks_of, score, unique
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule
from eval.questions.evidence import Proof, holds, proofs

LONGEST_CHANGE = 300
EMBEDDING = "embedding of the question"
_SEARCH_SETTINGS = tuple(
    "fusion lexical_weight vector_weight other_language exact depth limit per_page".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Finder:
    """Searches with these assistants, without writing an answer."""

    assistants: Assistants

    async def find(self, request: Request) -> Turn:
        """The turn after retrieval: hits, language, trace and the index generation of the hits."""
        return await self.assistants.get(request.assistant).find(request)

    async def assess(self, request: Request) -> Turn:
        """The turn after the decision whether the hits are enough evidence to answer."""
        return await self.assistants.get(request.assistant).assess(request)


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a measurement: the first k pages, with `parallel` questions at once.

    `rules` rewrite the set's documents to the site's paths; an empty `assistant` is the default one. If the assistant
    finds more passages than it answers from, `passages` is the number it answers from: the rows use these, the curve
    uses all. The right chunks are those that are `labelled` so by case, if there are labels, else those with the evidence.
    """

    k: int = 5
    parallel: int = 4
    assistant: str = ""
    rules: tuple[Rule, ...] = ()
    passages: int = 0
    labelled: Mapping[str, frozenset[str]] | None = None


DEFAULT = Plan()


async def evaluate(
    finder: Finder,
    cases: Sequence[Case],
    plan: Plan = DEFAULT,
    *,
    contestant: str = "",
    config: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Measure the finder on the cases; `progress` is called with the number of finished questions and of all.

    One unmeasured search goes first: it warms up, shows the index, and its errors are raised. Errors of later ones are
    recorded with their question, which is a miss. Raises `EvaluationError` if no document of the set is in the index.

    The details of an outcome: `ranked`, the addresses of the found pages; the `detected` language; `fallbacks`, the steps
    that failed; `in_index`, false if no indexed page is the document; `ranks` of relevant pages, chunks and chunks that know
    the section, as the values of `Ranks`, None if none is known; `hits` and `steps`, the trace.
    """
    if not cases:
        raise EvaluationError("There is no question.")
    run = _Run(finder, plan, contestant)
    first = await finder.find(run.request(cases[0], "eval-warm-up"))
    generation: Generation = first.generation
    run.generations.add(generation.info.id)
    urls = [page.url for page in await generation.pages()]
    run.documents = Documents(urls, plan.rules)
    docs = {case.doc or case.avoid[0] for case in cases}
    if not any(map(run.documents.pages, docs)):
        raise EvaluationError(
            f"None of the set's {len(docs)} documents (for example {min(docs)!r}) is one of the {len(urls)} indexed"
            f" pages (for example {min(urls, default='')!r}). Index their site, or rewrite them to its paths with"
            " --doc-map REGEX=REPL."
        )
    run.proofs = await run.right_chunks(generation, cases)
    outcomes = await in_parallel(cases, run.ask, plan.parallel, progress)
    measured = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "assistant": plan.assistant,
        "parallel": plan.parallel,
        "doc_map": [f"{rule.pattern.pattern}={rule.replacement}" for rule in plan.rules],
        "index": {**asdict(generation.info), "generations_seen": sorted(run.generations)},
        "steps": [record.step for record in first.trace],
        "passages": plan.passages or run.depth,
        "depth": run.depth,
        "search": {
            language: {name: sorted(values) for name, values in used.items()}
            for language, used in sorted(run.searches.items())
        },
    }
    return Result(RETRIEVAL, outcomes, {**measured, **(config or {})}, plan.k)


class _Run:
    """The tools and the observations of one run."""

    def __init__(self, finder: Finder, plan: Plan, contestant: str) -> None:
        self.finder = finder
        self.plan = plan
        self.contestant = contestant
        self.documents = Documents(())
        self.proofs: Mapping[str, Proof] = {}
        self.generations: set[int] = set()
        self.depth = plan.k
        self.searches: dict[str, dict[str, set[Any]]] = {}

    async def right_chunks(self, generation: Generation, cases: Sequence[Case]) -> Mapping[str, Proof]:
        if self.plan.labelled is None:
            return await proofs(generation, self.documents, cases)
        return {case: Proof(chunks, None) for case, chunks in self.plan.labelled.items()}

    def request(self, case: Case, id_: str) -> Request:
        # the assistant doesn't get the case's id, which may name the page
        return Request(messages=case.messages, assistant=self.plan.assistant, id=id_)

    async def ask(self, position: int, case: Case) -> Outcome:
        start = perf_counter()
        try:
            turn = await self.finder.find(self.request(case, f"eval-{position}"))
        except AssistantError as error:
            return self._outcome(case, (), start, error=f"{type(error).__name__}: {error}")
        self.generations.add(turn.generation.info.id)
        if turn.search:
            self._remember(turn.asked.language, turn.search.query)
        trace: dict[str, Any] = {
            "detected": turn.asked.language,
            "fallbacks": _fallbacks(turn),
            "steps": [_step(record) for record in turn.trace],
        }
        return self._outcome(case, turn.hits, start, **trace)

    def _remember(self, language: str, search: Query) -> None:
        self.depth = search.limit
        # weights can differ by language and question: save every used value
        used = self.searches.setdefault(language, {name: set() for name in _SEARCH_SETTINGS})
        for name in _SEARCH_SETTINGS:
            used[name].add(getattr(search, name))

    def _outcome(self, case: Case, hits: Sequence[Hit], start: float, error: str = "", **trace: Any) -> Outcome:
        ms = round((perf_counter() - start) * 1000, 3)
        used = hits[: self.plan.passages or len(hits)]
        ranked = unique([hit.chunk.url for hit in used])
        proof = self.proofs.get(case.id)
        pages = unique([self.documents.label(hit.chunk.url, case.relevant) for hit in hits])
        chunks = [hit.chunk.id for hit in hits]
        details: dict[str, Any] = {
            "ranked": list(ranked),
            "in_index": not case.doc or bool(self.documents.pages(case.doc)),
            "ranks": {
                "page": _ranks(pages, case.relevant or None),
                "chunk": _ranks(chunks, proof.chunks if proof else None),
                "section": _ranks(chunks, proof.placed if proof else None),
            },
            "hits": [self._hit(case, hit) for hit in used],
            "detected": "",
            "fallbacks": [],
            "steps": [],
        }
        labels = [self.documents.label(url, case.relevant) for url in ranked]
        known = score(labels, case.relevant, self.plan.k) if case.relevant else dict.fromkeys(MEASURES)
        values: dict[str, float | None] = {**known}
        if case.avoid:
            values[AVOIDED] = float(not any(self.documents.fits(doc, url) for doc in case.avoid for url in ranked[:1]))
        for name in PROVED:
            ranks = details["ranks"][name]
            values[name] = None if ranks is None else next((1 / r for r in ranks[0] if r <= self.plan.k), 0.0)
        return Outcome(case, self.contestant, values, ms, error, details | trace)

    def _hit(self, case: Case, hit: Hit) -> dict[str, Any]:
        right = any(self.documents.fits(doc, hit.chunk.url) for doc in case.relevant)
        scores = {"lexical": hit.lexical, "cosine": hit.cosine, "fused": hit.fused}
        rounded = {name: None if value is None else round(value, 4) for name, value in scores.items()}
        return {"link": hit.chunk.link, "right": right, **rounded}


def _step(record: StepRecord) -> dict[str, Any]:
    values = {name: value.text if isinstance(value, Question) else value for name, value in record.changes.items()}
    texts = [f"{name}: {value}" for name, value in values.items() if isinstance(value, (str, Mapping)) and value]
    changes, error = "; ".join(texts)[:LONGEST_CHANGE], record.error[:LONGEST_CHANGE]
    return {"step": record.step, "ms": round(record.ms, 1), "changes": changes, "error": error}


def _ranks(names: Sequence[str], relevant: Collection[str] | None) -> list[Any] | None:
    if relevant is None:
        return None
    ranks = ranks_of(names, relevant)
    return [list(ranks.found), ranks.listed, ranks.relevant]


def _fallbacks(turn: Turn) -> list[str]:
    failed = [record.step for record in turn.trace if record.error]
    query = turn.search and turn.search.query
    # a failed embedder leaves no error in the trace: the search uses keywords only
    return [*failed, EMBEDDING] if query and query.vector_weight and query.vector is None else failed


def language_right(result: Result) -> float:
    """Share of the searched questions whose language was detected correctly."""
    right = [outcome.details["detected"] == outcome.case.language for outcome in result.outcomes if not outcome.error]
    return sum(right) / len(right) if right else 0.0


CUTOFFS = (1, 3, 5, 10, 15, 20)
DEPTH = 40  # passages: with at most two per page, these are at least 20 pages


@dataclass(frozen=True, slots=True)
class Point:
    """The measures of `CURVE` at one k of one level ("page" or "chunk"), over the mean of the languages."""

    level: str
    k: int
    n: int
    measures: Mapping[str, Estimate]


def curve(result: Result) -> tuple[Point, ...]:
    """The measures of pages and of chunks at each of `CUTOFFS`, as far as was requested, without questions across languages."""
    depth = int(result.config.get("depth", result.k))
    points = list[Point]()
    for level in ("page", "chunk"):
        by_language: dict[str, list[tuple[Case, Ranks]]] = {}
        for outcome in result.outcomes:
            if (row := outcome.details["ranks"][level]) is not None and not outcome.case.cross:
                by_language.setdefault(outcome.case.language, []).append(
                    (outcome.case, Ranks(tuple(row[0]), row[1], row[2]))
                )
        parts = [by_language[language] for language in sorted(by_language)]
        # a page may have two passages, so twice as many are needed; up to 5 as in the main table
        reach = depth if level == "chunk" else max(depth // 2, min(depth, 5))
        points += [Point(level, k, sum(map(len, parts)), _at(parts, k)) for k in CUTOFFS if k <= reach and parts]
    return tuple(points)


def _at(parts: Sequence[Sequence[tuple[Case, Ranks]]], k: int) -> dict[str, Estimate]:
    values = [np.array([at(ranks, k) for _, ranks in part], dtype=np.float64) for part in parts]
    clusters = [[case.doc for case, _ in part] for part in parts]
    return dict(zip(CURVE, intervals(values, clusters), strict=True))


ASKED, SPELLED_OUT = "in the conversation", "spelled out"


async def follow_ups(
    finder: Finder,
    cases: Sequence[Case],
    plan: Plan,
    *,
    config: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Each follow-up question in its conversation, compared with the same question as a complete one.

    Raises `EvaluationError` if no case is a conversation.
    """
    chosen = [case for case in cases if case.earlier and case.standalone]
    if not chosen:
        raise EvaluationError("None of the rows is a conversation with 'messages' and 'standalone'.")
    asked = await evaluate(finder, chosen, plan, contestant=ASKED, config=config, progress=progress)
    complete = [replace(case, question=case.standalone, earlier=()) for case in chosen]
    alone = await evaluate(finder, complete, plan, contestant=SPELLED_OUT, config=config, progress=progress)
    # of the same question: rows and differences go by it
    paired = (replace(outcome, case=case) for outcome, case in zip(alone.outcomes, chosen, strict=True))
    return Result(CONVERSATIONS, (*asked.outcomes, *paired), {**asked.config, "against": SPELLED_OUT}, plan.k)


async def quotations(
    assistant: Assistant, cases: Sequence[Case], parallel: int, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """By language, what an assistant without a language model quotes on the cases that have evidence.

    Shares 0..1 of the answers whose `first` quotation has the proof, of those that have it `anywhere`, and of those that are `sure`,
    with the share of these whose first quotation has it; the median number of `characters` of all answers, without their links.
    """
    proven = [case for case in cases if case.evidence]
    answers = await in_parallel(proven, lambda _, case: quoted(assistant, case), parallel, progress)
    by_language: dict[str, list[Quoted]] = {}
    for case, answer in zip(proven, answers, strict=True):
        by_language.setdefault(case.language, []).append(answer)
    rows = []
    for language, own in sorted(by_language.items()):
        n, sure = len(own), [answer for answer in own if answer.sure]
        shares = {
            "first": sum(answer.first for answer in own) / n,
            "anywhere": sum(answer.anywhere for answer in own) / n,
            "sure": len(sure) / n,
            "right": sum(answer.first for answer in sure) / (len(sure) or 1),
        }
        characters = statistics.median(answer.characters for answer in own)
        rows.append({"language": language, "n": n, **shares, "characters": characters})
    return rows


@dataclass(frozen=True, slots=True)
class Quoted:
    """What an answer without a language model quotes: whether the `first` quotation has the proof, whether any has it, whether the answer
    is `sure`, by which `features`, and its `characters`.
    """

    first: bool
    anywhere: bool
    sure: bool
    features: Mapping[str, float]
    characters: int


async def quoted(assistant: Assistant, case: Case) -> Quoted:
    """What the assistant quotes for a case with evidence."""
    request = Request(case.messages, assistant.id, "eval-quotations")
    # what marks the quotations in the text goes no further than the step `cite`
    steps = upto(assistant.plans.answer, "events")
    plan = tuple(group for group in steps if not any(step.name == "cite" for step in group))
    turn = await runner.run(plan, await assistant.begin(request))
    texts, done = list[Text](), Done()
    assert turn.events is not None
    async with aclosing(turn.events) as events:
        async for event in events:
            if isinstance(event, Text):
                texts.append(event)
            elif isinstance(event, Done):
                done = event
    shown = [text.text for text in texts if text.quoted] if done.extractive else []
    first = bool(shown) and holds(shown[0], case.evidence)
    anywhere = any(holds(text, case.evidence) for text in shown) or holds("\n\n".join(shown), case.evidence)
    sure = done.extractive and not done.doubtful
    return Quoted(first, anywhere, sure, done.features, sum(len(text.text) for text in texts))
