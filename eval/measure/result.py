"""The result of any run (what came of each question, its figures by language and wording), the file that keeps both, and two results
compared question by question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from eval.files import EvaluationError, load_document, save_document
from eval.measure.rows import ALL, DEPTHS, MEAN, Pairs, Row, RowDifference, as_matrix, groups, row_of
from eval.measure.rows import MEASURES as OF_PAGES
from eval.questions.cases import Case

FORM = "docs-assistant result 1"
RETRIEVAL, CONVERSATIONS, REFUSALS, ANSWERS = "eval retrieval", "eval conversations", "eval refusals", "eval run"
CLUSTERS, VERDICTS = "eval clusters", "eval verdicts"
PROVED = ("chunk", "section")
"""Reciprocal ranks of the first chunk with the evidence, and of the first such chunk that knows its section."""
AVOIDED = "avoided"
"""1 if the first page is none of those that a case names to avoid."""
MEASURES: Mapping[str, tuple[str, ...]] = {
    RETRIEVAL: (*OF_PAGES, *PROVED, AVOIDED),
    CONVERSATIONS: (*OF_PAGES, *PROVED),
    REFUSALS: ("refusal",),
    CLUSTERS: tuple(f"f1_{k}" for k in DEPTHS),
    VERDICTS: ("refusal", "page", "proved"),
    ANSWERS: (
        "language", "faithful", "complete", "answers", "refusal", "fidelity",
        "correctness", "similarity", "keywords", "entities", "grounding",
    ),
}  # fmt: skip
"""What is measured by each command."""
JUDGED: Mapping[str, tuple[str, ...]] = {
    RETRIEVAL: ("rr", *PROVED, AVOIDED),
    CONVERSATIONS: ("rr", *PROVED),
    REFUSALS: ("refusal",),
    CLUSTERS: tuple(f"f1_{k}" for k in DEPTHS),
    VERDICTS: ("refusal", "page", "proved"),
    ANSWERS: ("language", "faithful", "complete", "answers", "refusal", "fidelity", "correctness"),
}
"""The measures by which a question became better or worse."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one question: each measure 0..1, None if it doesn't apply or isn't known.

    `contestant` is who was asked: an assistant, a configuration, a form of the question; empty if there is only one. `ms` is
    the time of the whole call, `error` says why it failed. `details` are plain JSON values, as each kind of run has them.
    """

    case: Case
    contestant: str
    values: Mapping[str, float | None]
    ms: float = 0.0
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        """False for questions that the documentation doesn't answer."""
        return self.case.answerable


@dataclass(frozen=True)
class Result:
    """The result of a run of the command `kind`. `config` says how it was measured: settings, index, date, model.

    `k` is the number of pages that the measures are about, 0 if they are about something else.
    """

    kind: str
    outcomes: tuple[Outcome, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    k: int = 0

    @property
    def measures(self) -> tuple[str, ...]:
        """What is measured of each question."""
        return MEASURES[self.kind]

    @property
    def judged(self) -> tuple[str, ...]:
        """The measures by which a question became better or worse."""
        return JUDGED[self.kind]

    @property
    def contestants(self) -> tuple[str, ...]:
        """In the order of the command line."""
        return tuple(dict.fromkeys(outcome.contestant for outcome in self.outcomes))

    @property
    def base(self) -> str:
        """The contestant that the others are compared with: that of `against`, or else the first one."""
        against = str(self.config.get("against", ""))
        return against if against in self.contestants else self.contestants[0]

    @property
    def judge(self) -> str:
        """The judge with its wording; empty without one. Verdicts of two judges can't be compared."""
        wording = sorted(set(self.config.get("criteria", {}).values()))
        return " ".join(filter(None, [self.config.get("judge", ""), *wording]))

    @property
    def cases(self) -> tuple[Case, ...]:
        """The questions that the first contestant was asked."""
        return tuple(outcome.case for outcome in self.of(self.contestants[0]).outcomes)

    def of(self, contestant: str) -> Result:
        """The outcomes of one contestant alone."""
        return replace(self, outcomes=tuple(outcome for outcome in self.outcomes if outcome.contestant == contestant))

    def only(self, ids: frozenset[str]) -> Result:
        """The same run with these questions alone."""
        return replace(self, outcomes=tuple(outcome for outcome in self.outcomes if outcome.case.id in ids))

    @cached_property
    def rows(self) -> Mapping[str, tuple[Row, ...]]:
        """The figures of each contestant by language and variant, in the order of `groups`."""
        rows: dict[str, tuple[Row, ...]] = {}
        for name in self.contestants:
            own = self.of(name)
            values = as_matrix([outcome.values for outcome in own.outcomes], self.measures)
            rows[name] = tuple(row_of(group, own.cases, values, self.measures) for group in groups(own.cases))
        return rows

    def row(
        self, language: str = MEAN, variant: str = ALL, *, cross: bool = False, contestant: str | None = None
    ) -> Row | None:
        """One row, that of the first contestant unless another is named; None if there are no such questions."""
        rows = self.rows[self.contestants[0] if contestant is None else contestant]
        return next((row for row in rows if (row.language, row.variant, row.cross) == (language, variant, cross)), None)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every other contestant against `base`, over the questions that both were asked."""
        others = [name for name in self.contestants if name != self.base]
        base = self.of(self.base)
        return tuple(compare(base, self.of(name), common=True, names=(self.base, name)) for name in others)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The questions that failed."""
        return tuple(outcome for outcome in self.outcomes if outcome.error)

    @property
    def malformed(self) -> int:
        """Number of failed judgements; a later run asks for them again."""
        return sum(
            bool(judged["error"]) for outcome in self.outcomes for judged in outcome.details.get("judgements", ())
        )

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """Median and 95th percentile of the time of a successful call."""
        times = [outcome.ms for outcome in self.outcomes if not outcome.error]
        return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95)) if times}

    def save(self, path: str | Path, **figures: Any) -> None:
        """Write the result as JSON, with more `figures` for people who read it. Raises `EvaluationError` if it can't."""
        head = {
            "form": FORM,
            "kind": self.kind,
            "k": self.k,
            "config": dict(self.config),
            "failed": len(self.failed),
            "failed_judgements": self.malformed,
            "ms": self.milliseconds,
            "rows": [{"contestant": name, **asdict(row)} for name, rows in self.rows.items() for row in rows],
            "comparisons": [comparison.summary() for comparison in self.comparisons],
            **figures,
        }
        save_document(path, head, "outcomes", [asdict(outcome) for outcome in self.outcomes])


def load_result(path: str | Path) -> Result:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else, or of an earlier version."""
    made_by = "`, `".join(MEASURES)
    document = load_document(path, FORM, made_by)
    try:
        result = TypeAdapter(Result).validate_python(document)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of `{made_by}`: {error}.") from error
    if result.kind not in MEASURES or not result.outcomes:
        raise EvaluationError(f"{path} is no result of `{made_by}`.")
    return result


LEAST = 0.005  # a smaller difference looks like none
ASKS = ("language", "variant", "cross", "question", "doc", "also", "avoid")
"""What of a case makes two with one id the same question."""


@dataclass(frozen=True, slots=True)
class Change:
    """A question that moved: the sum of its differences, and each measure that differs, in A and in B."""

    case: Case
    difference: float
    values: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Comparison:
    """B compared with A, whose `names` these are: paired differences, the questions that moved, and different settings.

    `changes` has all questions that moved, the largest move first; `left_out` counts questions that only one of the results has.
    """

    names: tuple[str, str]
    judged: tuple[str, ...]
    k: int
    changes: tuple[Change, ...]
    left_out: int
    config: Mapping[str, tuple[Any, Any]]
    pairs: Pairs = field(repr=False, compare=False)

    @cached_property
    def rows(self) -> tuple[RowDifference, ...]:
        """The paired differences by language and variant."""
        return self.pairs.rows()

    @property
    def n(self) -> int:
        """The number of compared questions."""
        return len(self.pairs.cases)

    @property
    def worse(self) -> tuple[Change, ...]:
        """The questions that became worse."""
        return tuple(change for change in self.changes if change.difference < 0)

    @property
    def better(self) -> tuple[Change, ...]:
        """The questions that became better."""
        return tuple(change for change in self.changes if change.difference > 0)

    def summary(self) -> dict[str, Any]:
        """The figures as JSON values."""
        counts = {"n": self.n, "worse": len(self.worse), "better": len(self.better), "left_out": self.left_out}
        return {"names": self.names, **counts, "rows": [asdict(row) for row in self.rows]}


def compare(a: Result, b: Result, *, common: bool = False, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Paired differences B - A of the first contestant of each.

    With `common`, questions that only one of them has are left out; questions with the same id must still be equal. Raises
    `EvaluationError` if the two are of different kinds, questions or judges.
    """
    if a.kind != b.kind:
        raise EvaluationError(
            f"{names[0]} is a result of `{a.kind}`, {names[1]} of `{b.kind}`: only results of the same command can be compared."
        )
    if a.k != b.k:
        raise EvaluationError(f"A was measured at k = {a.k}, B at k = {b.k}: measure both with the same --k.")
    if a.judge != b.judge:
        raise EvaluationError(
            f"The judge of A is {a.judge or 'none'}, that of B {b.judge or 'none'}: their figures can't be compared."
            " `eval run --against A.json` measures both in the same way."
        )
    of_a, of_b = (
        {outcome.case.id: outcome for outcome in result.of(result.contestants[0]).outcomes} for result in (a, b)
    )
    left_out = _left_out(of_a, of_b, common=common)
    cases = [outcome.case for id_, outcome in of_a.items() if id_ in of_b]
    before, after = (as_matrix([of[case.id].values for case in cases], a.measures) for of in (of_a, of_b))
    pairs = Pairs(cases, a.measures, before, after)
    changes = sorted(_changes(pairs, a.judged), key=lambda change: -abs(change.difference))
    flat_a, flat_b = dict(flat(a.config)), dict(flat(b.config))
    config = {name: (flat_a.get(name), flat_b.get(name)) for name in {**flat_a, **flat_b} if name != "date"}
    differing = {name: both for name, both in config.items() if both[0] != both[1]}
    return Comparison(names, a.judged, a.k, tuple(changes), left_out, differing, pairs)


def _left_out(of_a: Mapping[str, Outcome], of_b: Mapping[str, Outcome], *, common: bool) -> int:
    """The number of questions that only one of both has. Raises `EvaluationError` if they are of different sets."""
    both = of_a.keys() & of_b.keys()
    if other := [id_ for id_ in both if not same_question(of_a[id_].case, of_b[id_].case)]:
        raise EvaluationError(
            f"{len(other)} questions have the same id in A and B but different content, for example {min(other)!r}:"
            f" {of_a[min(other)].case.question!r} and {of_b[min(other)].case.question!r}."
            " Measure both with the same version of the set."
        )
    if not both:
        raise EvaluationError("A and B have no question in common: they measured different sets.")
    only_a, only_b = len(of_a) - len(both), len(of_b) - len(both)
    if (only_a or only_b) and not common:
        raise EvaluationError(
            f"A and B asked different questions: {only_a} are only in A, {only_b} only in B."
            " Measure both with the same set, or compare the common questions with --common."
        )
    return only_a + only_b


def same_question(one: Case, other: Case) -> bool:
    """True if both ask the same, and want the same pages."""
    return all(getattr(one, name) == getattr(other, name) for name in ASKS)


def _changes(pairs: Pairs, judged: Sequence[str]) -> Iterator[Change]:
    columns = {name: pairs.measures.index(name) for name in judged}
    for case, before, after in zip(pairs.cases, pairs.a, pairs.b, strict=True):
        values = {name: (float(before[i]), float(after[i])) for name, i in columns.items()}
        # a difference to NaN is never large: a measure that one of them lacks has not moved
        moved = {name: (a, b) for name, (a, b) in values.items() if abs(b - a) >= LEAST}
        if moved:
            yield Change(case, sum(b - a for a, b in moved.values()), moved)


def flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a nested configuration with their paths, as `index.recipe.embedder`."""
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            # JSON has no tuples: a loaded result must equal the one in memory
            yield f"{path}{name}", list(value) if isinstance(value, tuple) else value
