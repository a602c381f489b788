"""Searches every question of a set, without writing an answer, and measures the found pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Protocol

from app.core.errors import AssistantError
from app.core.turn import Request, StepRecord, Turn
from app.core.types import Hit, Query
from app.index.protocols import Generation
from eval.cache import Progress, in_parallel
from eval.files import EvaluationError
from eval.measure.metrics import Ranks, ranks_of, score, unique
from eval.measure.result import CaseResult, Found, RetrievalResult, StepResult
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule
from eval.questions.evidence import Proof, proofs

LONGEST_CHANGE = 300
EMBEDDING = "embedding of the question"
_SEARCH_SETTINGS = (
    "fusion",
    "lexical_weight",
    "vector_weight",
    "other_language",
    "exact",
    "depth",
    "limit",
    "per_page",
)


class Finder(Protocol):
    """An assistant that searches without writing an answer."""

    async def find(self, request: Request) -> Turn:
        """The turn after retrieval: hits, language, trace and the index generation of the hits."""
        ...

    async def assess(self, request: Request) -> Turn:
        """The turn after the decision whether the hits are enough evidence to answer."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a measurement: the first k pages, with `parallel` questions at once.

    `rules` rewrite the set's documents to the site's paths; an empty `assistant` is the default one. If the assistant
    finds more passages than it answers from, `passages` is the number it answers from: the rows use these, the curve
    uses all. `labels` has the relevant chunks of cases; otherwise the evidence decides.
    """

    k: int = 5
    parallel: int = 4
    assistant: str = ""
    rules: tuple[Rule, ...] = ()
    passages: int = 0
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)


DEFAULT = Plan()


async def evaluate(
    finder: Finder,
    cases: Sequence[Case],
    plan: Plan = DEFAULT,
    *,
    config: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> RetrievalResult:
    """Measure the finder on the cases; `progress` is called with the number of finished questions and of all.

    One unmeasured search goes first: it warms up, shows the index, and its errors are raised. Errors of later ones are
    recorded with their question, which is a miss. Raises `EvaluationError` if no document of the set is in the index.
    """
    if not cases:
        raise EvaluationError("There is no question.")
    run = _Run(finder, plan)
    first = await finder.find(run.request(cases[0], "eval-warm-up"))
    generation: Generation = first.generation
    run.generations.add(generation.info.id)
    urls = [page.url for page in await generation.pages()]
    run.documents = Documents(urls, plan.rules)
    _check_documents(run.documents, cases, urls)
    run.proofs = await proofs(generation, run.documents, cases)
    results = await in_parallel(cases, run.ask, plan.parallel, progress)
    index = {**asdict(generation.info), "generations_seen": sorted(run.generations)}
    return RetrievalResult(
        k=plan.k,
        cases=results,
        config={
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "assistant": plan.assistant,
            "parallel": plan.parallel,
            "doc_map": [f"{rule.pattern.pattern}={rule.replacement}" for rule in plan.rules],
            "index": index,
            "steps": [record.step for record in first.trace],
            "passages": plan.passages or run.depth,
            "depth": run.depth,
            "search": {
                language: {name: sorted(values) for name, values in used.items()}
                for language, used in sorted(run.searches.items())
            },
            **(config or {}),
        },
    )


class _Run:
    """The tools and the observations of one run."""

    def __init__(self, finder: Finder, plan: Plan) -> None:
        self.finder = finder
        self.plan = plan
        self.documents = Documents(())
        self.proofs: Mapping[str, Proof] = {}
        self.generations: set[int] = set()
        self.depth = plan.k
        self.searches: dict[str, dict[str, set[Any]]] = {}

    def request(self, case: Case, id_: str) -> Request:
        # the assistant doesn't get the case's id, which may name the page
        return Request(messages=case.messages, assistant=self.plan.assistant, id=id_)

    async def ask(self, position: int, case: Case) -> CaseResult:
        start = perf_counter()
        try:
            turn = await self.finder.find(self.request(case, f"eval-{position}"))
        except AssistantError as error:
            return self._result(case, (), start, error=f"{type(error).__name__}: {error}")
        self.generations.add(turn.generation.info.id)
        if turn.search:
            self._remember(turn.language, turn.search)
        return self._result(
            case,
            turn.hits,
            start,
            detected=turn.language,
            steps=tuple(_step_result(record) for record in turn.trace),
            fallbacks=_fallbacks(turn),
        )

    def _remember(self, language: str, search: Query) -> None:
        self.depth = search.limit
        # weights can differ by language and question: save every used value
        used = self.searches.setdefault(language, {name: set() for name in _SEARCH_SETTINGS})
        for name in _SEARCH_SETTINGS:
            used[name].add(getattr(search, name))

    def _result(self, case: Case, hits: Sequence[Hit], start: float, **known: Any) -> CaseResult:
        ms = round((perf_counter() - start) * 1000, 3)
        ranked = unique([hit.chunk.url for hit in hits[: self.plan.passages or len(hits)]])
        scores = score(self._labels(case, ranked), case.relevant, self.plan.k)
        proof = self.proofs.get(case.id)
        return CaseResult(
            case,
            scores,
            ranked,
            ms,
            in_index=bool(self.documents.pages(case.doc)),
            hits=tuple(self._found(case, hit) for hit in hits[: self.plan.passages or len(hits)]),
            pages=self._page_ranks(case, hits),
            chunks=_ranks(hits, self.plan.labels.get(case.id, proof.chunks if proof else None)),
            sections=_ranks(hits, proof.placed if proof else None),
            **known,
        )

    def _found(self, case: Case, hit: Hit) -> Found:
        right = any(self.documents.fits(doc, hit.chunk.url) for doc in case.relevant)
        lexical, cosine = (None if score is None else round(score, 4) for score in (hit.lexical, hit.cosine))
        return Found(hit.chunk.link, right, lexical, cosine, round(hit.fused, 4))

    def _labels(self, case: Case, urls: Sequence[str]) -> list[str]:
        return [self.documents.label(url, case.relevant) for url in urls]

    def _page_ranks(self, case: Case, hits: Sequence[Hit]) -> Ranks:
        labels = unique(self._labels(case, [hit.chunk.url for hit in hits]))
        return ranks_of(labels, case.relevant)


def _step_result(record: StepRecord) -> StepResult:
    changes = [
        f"{name}: {value}" for name, value in record.changes.items() if isinstance(value, (str, Mapping)) and value
    ]
    return StepResult(
        record.step, round(record.ms, 1), "; ".join(changes)[:LONGEST_CHANGE], record.error[:LONGEST_CHANGE]
    )


def _ranks(hits: Sequence[Hit], relevant: frozenset[str] | None) -> Ranks | None:
    return None if relevant is None else ranks_of([hit.chunk.id for hit in hits], relevant)


def _fallbacks(turn: Turn) -> tuple[str, ...]:
    failed = tuple(record.step for record in turn.trace if record.error)
    search = turn.search
    # a failed embedder leaves no error in the trace: the search uses keywords only
    return (*failed, EMBEDDING) if search and search.vector_weight and search.vector is None else failed


def _check_documents(documents: Documents, cases: Iterable[Case], urls: Sequence[str]) -> None:
    docs = {case.doc for case in cases}
    if not any(documents.pages(doc) for doc in docs):
        raise EvaluationError(
            f"None of the set's {len(docs)} documents (for example {min(docs)!r}) is one of the {len(urls)} indexed"
            f" pages (for example {min(urls, default='')!r}). Index their site, or rewrite them to its paths with"
            " --doc-map REGEX=REPL."
        )
