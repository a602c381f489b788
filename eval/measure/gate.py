"""The gate: a result against a kept baseline, question by question, and whether the drop is real.

A baseline holds for each question the rank of the first right page, of the first chunk with the evidence and of the
first such chunk that knows its section, a question a line, so that a review shows what got better or worse.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from eval.errors import EvaluationError
from eval.measure.compare import enough_to_judge
from eval.measure.depths import Ranks
from eval.measure.metrics import Estimate, intervals
from eval.measure.result import ALL, CaseResult, RetrievalResult, groups
from eval.questions.cases import Case, read_text

FORM = "docs-assistant baseline 1"
MAX_DROP = 0.02
MEASURES = ("page", "chunk", "section")
COMMON = 0.5  # below this share of shared questions the baseline is of another set


@dataclass(frozen=True, slots=True)
class Standing:
    """What a baseline has of one question: which question it was, and the first ranks (0: none, None: unknown)."""

    asks: str
    page: int | None
    chunk: int | None
    section: int | None


@dataclass(frozen=True)
class Baseline:
    """The standings by the question's id; `about` says what they were measured with."""

    k: int
    standings: Mapping[str, Standing]
    about: Mapping[str, Any]

    def save(self, path: str | Path) -> None:
        """Write it, a question a line. Raises `EvaluationError` where the file can't be written."""
        head = {"form": FORM, "k": self.k, "about": dict(self.about)}
        save_lines(path, head, {id_: astuple(standing) for id_, standing in self.standings.items()})


@dataclass(frozen=True, slots=True)
class Verdict:
    """One group's difference to the baseline in one measure. `dropped`: it is real and larger than allowed."""

    measure: str
    language: str
    cross: bool
    n: int
    difference: Estimate
    dropped: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """All verdicts; `new` questions aren't in the baseline, `gone` ones only there (or worded otherwise)."""

    verdicts: tuple[Verdict, ...]
    n: int
    new: int
    gone: int

    @property
    def passed(self) -> bool:
        """True when nothing dropped."""
        return not any(verdict.dropped for verdict in self.verdicts)


def baseline_of(result: RetrievalResult) -> Baseline:
    """The result as a baseline for later ones."""
    config = result.config
    about = {
        "set": config.get("set", ""),
        "version": config.get("version", ""),
        "recipe": config.get("index", {}).get("recipe", {}),
        "mean": {
            row.language: round(row.measures["rr"].mean, 4)
            for row in result.rows
            if row.variant == ALL and not row.cross
        },
    }
    return Baseline(result.k, {one.case.id: _standing(one) for one in result.cases}, about)


def load_baseline(path: str | Path) -> Baseline:
    """A baseline that `save` wrote. Raises `EvaluationError` when the file is something else."""
    path = Path(path)
    try:
        document = json.loads(read_text(path))
        if document["form"] != FORM:
            raise EvaluationError(f"{path} has the form {document['form']!r}, needed is {FORM!r}: write it anew.")
        standings = {id_: Standing(*row) for id_, row in document["questions"].items()}
        return Baseline(int(document["k"]), standings, dict(document["about"]))
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} is no baseline of `eval gate --update` ({error}).") from error


def judge(result: RetrievalResult, baseline: Baseline, max_drop: float = MAX_DROP) -> Gate:
    """The result against the baseline: per language, for their mean and for questions across languages.

    A drop counts when it is larger than `max_drop` and its 95 % interval, drawn by page, lies below 0.
    """
    if result.k != baseline.k:
        raise EvaluationError(f"The baseline is for k = {baseline.k}, the result for k = {result.k}.")
    pairs = paired(result.cases, baseline.standings)
    verdicts = tuple(one for measure in MEASURES for one in _verdicts(measure, pairs, result.k, max_drop))
    return Gate(verdicts, len(pairs), len(result.cases) - len(pairs), len(baseline.standings) - len(pairs))


class Asked(Protocol):
    """What was measured of one question."""

    @property
    def case(self) -> Case:
        """The question."""
        ...


class Kept(Protocol):
    """What a baseline has of one question."""

    @property
    def asks(self) -> str:
        """Which question it was, as `asks` told."""
        ...


A = TypeVar("A", bound=Asked)
K = TypeVar("K", bound=Kept)


def paired(found: Sequence[A], standings: Mapping[str, K]) -> list[tuple[A, K]]:
    """Each question with its standing, where it is still the same. Raises `EvaluationError` for another set."""
    pairs = [(one, standings[one.case.id]) for one in found if one.case.id in standings]
    pairs = [(one, before) for one, before in pairs if before.asks == asks(one.case)]
    total = max(len(found), len(standings))
    if len(pairs) < COMMON * total:
        raise EvaluationError(
            f"Only {len(pairs)} of {total} questions are those of the baseline: it is of another set, or out of date."
            " Write it anew with --update, and have the change reviewed."
        )
    return pairs


def save_lines(path: str | Path, head: Mapping[str, Any], questions: Mapping[str, Any]) -> None:
    """Write a baseline, a question a line. Raises `EvaluationError` where the file can't be written."""
    rows = [f"  {json.dumps(id_, ensure_ascii=False)}: {json.dumps(one)}" for id_, one in sorted(questions.items())]
    told = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    try:
        Path(path).write_text(f'{told},\n "questions": {{\n' + ",\n".join(rows) + "\n }\n}\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"The baseline can't be written: {error}") from error


_Pair = tuple[CaseResult, Standing]


def _verdicts(measure: str, pairs: Sequence[_Pair], k: int, max_drop: float) -> list[Verdict]:
    ranks = [(one.case, getattr(_standing(one), measure), getattr(before, measure)) for one, before in pairs]
    known = [(case, _rr(now, k) - _rr(then, k)) for case, now, then in ranks if now is not None and then is not None]
    cases = [case for case, _ in known]
    differences = np.array([[one] for _, one in known], dtype=np.float64)
    verdicts = []
    for group in groups(cases):
        if group.variant != ALL:
            continue
        clusters = group.clusters(cases)
        one = intervals([differences[list(part)] for part in group.parts], clusters)[0]
        dropped = enough_to_judge(clusters) and one.high < 0 and -one.mean > max_drop
        verdicts.append(Verdict(measure, group.language, group.cross, group.n, one, dropped))
    return verdicts


def _standing(one: CaseResult) -> Standing:
    # of the passages that an answer is made from, however deep was measured besides
    page = round(1 / one.scores.rr) if one.scores.rr else 0
    return Standing(asks(one.case), page, _first(one.chunks), _first(one.sections))


def _first(ranks: Ranks | None) -> int | None:
    return None if ranks is None else ranks.found[0] if ranks.found else 0


def _rr(rank: int, k: int) -> float:
    return 1 / rank if 0 < rank <= k else 0.0


def asks(case: Case) -> str:
    """A short name for all that makes it this question."""
    text = "\0".join((case.question, case.language, str(case.cross), case.evidence, *case.relevant))
    return hashlib.sha256(text.encode()).hexdigest()[:8]
