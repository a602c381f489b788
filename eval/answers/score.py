"""Scores answers: plain measures and judgements for each answer, and the figures of a run beside them, with its text."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from app.core.prompts import Prompts
from app.core.types import Vector
from app.models.guarded import Embedder
from app.text.analysis import fold
from app.text.answer_language import is_refusal
from app.text.language import LanguageDetector
from app.text.literals import claims, comparable, occurs
from eval.judge import ANSWERS, COMPLETE, FAITHFUL, REFUSES, Criterion, Judgement, Task
from eval.measure.result import ANSWERS as ANSWERS_RUN
from eval.measure.result import MEASURES, Outcome, Result
from eval.measure.rows import Estimate, intervals
from eval.measure.tables import Table, as_table, comparison_text, measure_table
from eval.questions.cases import CHIT_CHAT, Case


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a contestant; `error` says why there is none. `passages` are what the model read; of another assistant,
    what the index has on the pages that it cites and on its words.

    `pages` are those that were found, best first; of another assistant, those that it cites, if they are indexed. Only of
    our own are known: whether the question was `refused` for lack of evidence; the number of `calls` to language models;
    the steps that failed; the `outcome` that the question log has; and how many of its `statements` were `unproved`. Tokens include all calls to models, as the models counted them; 0 if they didn't.
    """

    contestant: str
    case: str
    text: str = ""
    passages: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    ms: float = 0.0
    extractive: bool = False
    error: str = ""
    pages: tuple[str, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: bool = False
    failed_steps: tuple[str, ...] = ()
    outcome: str = ""
    statements: int = 0
    unproved: int = 0


BATCH = 32


@dataclass(frozen=True)
class Scorer:
    """The tools to score with; one for all answers of a run.

    `language`: the answer is in the question's language. `faithful`, `complete`, `answers`: verdicts of the judge.
    `refusal`: it refuses exactly if the documentation has no answer. `fidelity`: share of its numbers, commands and
    addresses that are in the passages. `correctness`: mean of `keywords`, `entities` and `similarity`, each
    compared with the reference. `grounding`: cosine of the answer and its passages.
    """

    prompts: Prompts
    detector: LanguageDetector
    embedder: Embedder
    _vectors: dict[str, Vector] = field(default_factory=dict)

    async def score(
        self, answers: Sequence[Answer], cases: Mapping[str, Case], judgements: Sequence[Judgement]
    ) -> tuple[Outcome, ...]:
        """The outcome of each answer, in order."""
        texts = [t for a in answers for t in (a.text, cases[a.case].answer, "\n\n".join(a.passages)) if t.strip()]
        await self._embed(texts)
        judged: dict[str, list[Judgement]] = {}
        for judgement in judgements:
            judged.setdefault(judgement.row, []).append(judgement)
        rows = [(answer, cases[answer.case], judged.get(row_of(answer), [])) for answer in answers]
        return tuple(outcome_of(answer, case, self._values(answer, case, own), own) for answer, case, own in rows)

    def _values(self, answer: Answer, case: Case, judgements: Sequence[Judgement]) -> dict[str, float | None]:
        values: dict[str, float | None] = dict.fromkeys(MEASURES[ANSWERS_RUN])
        if answer.error:  # nobody got an answer
            return {**values, "language": 0.0, "refusal": 0.0}
        verdicts = {j.criterion: None if j.verdict is None else float(j.verdict) for j in judgements}
        refused = verdicts.get(REFUSES)
        if refused is None:
            refused = float(self._says_nothing_found(answer.text))
        values["language"] = float(self.detector.detect(answer.text) == case.language)
        if case.answerable or case.variant != CHIT_CHAT:
            values["refusal"] = 1 - refused if case.answerable else refused
        if case.answerable:
            values |= {name: verdicts.get(name) for name in (FAITHFUL, COMPLETE, ANSWERS)}
            values |= self._plain(answer, case)
        return values

    def _plain(self, answer: Answer, case: Case) -> dict[str, float | None]:
        vector = self._vectors.get(answer.text, ())
        values: dict[str, float | None] = {"fidelity": fidelity(answer.text, answer.passages)}
        if answer.passages:
            values["grounding"] = max(0.0, cosine(vector, self._vectors["\n\n".join(answer.passages)]))
        if case.answer:
            language = self.prompts.languages.get(case.language)
            stopwords = language.traits.stopwords if language else ()
            values["keywords"] = keyword_overlap(answer.text, case.answer, stopwords)
            values["entities"] = entity_overlap(answer.text, case.answer)
            values["similarity"] = max(0.0, cosine(vector, self._vectors[case.answer]))
            values["correctness"] = mean([values["keywords"], values["entities"], values["similarity"]])
        return values

    def _says_nothing_found(self, text: str) -> bool:
        said = fold(" ".join(text.split()))
        return any(is_refusal(text, language) for language in self.prompts.languages.values()) or any(
            fold(" ".join(self.prompts.render(code, "nothing_found").split())).split(". ")[0] in said
            for code in self.prompts.languages
        )

    async def _embed(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            self._vectors.update(zip(batch, await self.embedder.embed_passages(batch), strict=True))


def outcome_of(
    answer: Answer, case: Case, values: Mapping[str, float | None], judgements: Sequence[Judgement] = ()
) -> Outcome:
    """The outcome of an answer; its details are the other fields of the answer, and its `judgements`."""
    details = {**asdict(answer), "judgements": [asdict(judgement) for judgement in judgements]}
    contestant, ms, error, _ = (details.pop(name) for name in ("contestant", "ms", "error", "case"))
    lists = {name: list(value) for name, value in details.items() if isinstance(value, tuple)}  # JSON has no tuples
    return Outcome(case, contestant, values, ms, error, details | lists)


def row_of(answer: Answer) -> str:
    """The key of an answer in judgements."""
    return f"{answer.contestant}\0{answer.case}"


def tasks(answers: Sequence[Answer], cases: Mapping[str, Case], wanted: Mapping[str, Criterion]) -> list[Task]:
    """The tasks for the judge: refusal for all answers; the others only if the documentation has an answer and the
    source is known.
    """
    to_judge: list[Task] = []
    for answer in answers:
        case = cases[answer.case]
        if answer.error or not answer.text:
            continue
        source = "\n\n".join(answer.passages)
        fields = {"question": case.question, "answer": answer.text, "source": source, "reference": case.answer}
        needs = {REFUSES: "answer", ANSWERS: "answer", FAITHFUL: "source", COMPLETE: "reference"}
        for name, criterion in wanted.items():
            if fields[needs[name]] and (case.answerable or name == REFUSES):
                to_judge.append(Task(row_of(answer), criterion, fields))
    return to_judge


STEM = 5
_NAME = re.compile(r"\b(?:[A-Z]{2,}\w*|\w+[A-Z]\w*|\w+[._/-]\w[\w./-]*\d*|\w*\d\w*)\b")
_WORD = re.compile(r"[^\W_]+")


def fidelity(answer: str, passages: Sequence[str]) -> float | None:
    """Share of the literals (numbers, commands, addresses) that are in the passages, ignoring spaces, capitals and the
    spelling of units; None without literals.
    """
    wanted = [comparable(claim) for claim in claims(answer)]
    if not wanted or not passages:
        return None
    source = comparable("\n".join(passages))
    return sum(occurs(claim, source) for claim in wanted) / len(wanted)


def keyword_overlap(answer: str, reference: str, stopwords: Collection[str]) -> float | None:
    """Share of the reference's content words that the answer has, compared by their first letters."""
    wanted, said = _stems(reference, stopwords), _stems(answer, stopwords)
    return len(wanted & said) / len(wanted) if wanted else None


def entity_overlap(answer: str, reference: str) -> float | None:
    """Share of the reference's names, numbers and identifiers that the answer has; None if the reference has none."""
    wanted = {comparable(name) for name in _NAME.findall(reference)}
    said = comparable(answer)
    return sum(occurs(name, said) for name in wanted) / len(wanted) if wanted else None


def cosine(a: Vector, b: Vector) -> float:
    """Cosine of two vectors, 0 if one is empty."""
    first, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    lengths = float(np.linalg.norm(first) * np.linalg.norm(other))
    return float(first @ other) / lengths if lengths else 0.0


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _stems(text: str, stopwords: Collection[str]) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(fold(text)) if word not in stopwords and len(word) > 1}


KINDS = ("faithful, complete", "faithful, incomplete", "unfaithful, complete", "unfaithful, incomplete")
NOT_JUDGED = "not judged"


def side_by_side(a: Result, b: Result, names: tuple[str, str]) -> Result:
    """The answers of the first contestant of each, under these names; the second is compared with the first."""
    both = [
        replace(outcome, contestant=name)
        for result, name in zip((a, b), names, strict=True)
        for outcome in result.of(result.contestants[0]).outcomes
    ]
    return replace(b, outcomes=tuple(both), config={**b.config, "against": names[0]})


def _kind(outcome: Outcome) -> str:
    faithful, complete = outcome.values[FAITHFUL], outcome.values[COMPLETE]
    if faithful is None or complete is None:
        return NOT_JUDGED
    return f"{'faithful' if faithful else 'unfaithful'}, {'complete' if complete else 'incomplete'}"


def _answered(result: Result) -> Mapping[str, Sequence[Outcome]]:
    """The answers to answerable questions of each contestant."""
    return {
        name: [outcome for outcome in result.of(name).outcomes if outcome.answerable and not outcome.error]
        for name in result.contestants
    }


def kind_table(result: Result) -> Table:
    """Returns the table of faithful and complete answers in the right language; no rows if nothing was judged."""
    rows, judged = list[list[str]](), False
    for name, own in _answered(result).items():
        total = len(own) or 1
        for kind in (*KINDS, NOT_JUDGED):
            of_kind = [outcome for outcome in own if _kind(outcome) == kind]
            judged |= bool(of_kind) and kind != NOT_JUDGED
            right = sum(outcome.values["language"] == 1 for outcome in of_kind)
            counts = (right, len(of_kind) - right, len(of_kind))
            rows.append([f"{name}: {kind}", *(f"{n} ({100 * n / total:.0f} %)" for n in counts)])
    return ["answers that are", "right language", "wrong language", "all"], rows if judged else []


def kind_shares(result: Result) -> Mapping[str, Mapping[str, tuple[int, Estimate]]]:
    """By kind and contestant, the number of judged answers and the share of them that is of the kind."""
    judged = {
        name: [outcome for outcome in own if _kind(outcome) != NOT_JUDGED] for name, own in _answered(result).items()
    }
    return {
        kind: {
            name: (len(own), intervals([values], [[outcome.case.doc for outcome in own]])[0])
            for name, own in judged.items()
            if own
            for values in [np.array([[_kind(outcome) == kind] for outcome in own], dtype=np.float64)]
        }
        for kind in KINDS
    }


def efforts(result: Result) -> list[dict[str, Any]]:
    """Time until the whole answer and mean tokens of an answer, by contestant; None where tokens weren't counted.

    Failed answers are left out, and those without token counts out of the means.
    """
    rows = list[dict[str, Any]]()
    for name in result.contestants:
        own = result.of(name)
        known = [outcome.details for outcome in own.outcomes if not outcome.error]
        counted = [details for details in known if details["prompt_tokens"]]
        tokens = {
            field: float(np.mean([details[field] for details in counted])) if counted else None
            for field in ("prompt_tokens", "completion_tokens")
        }
        if known:
            rows.append({"contestant": name, "n": len(known), **own.milliseconds, **tokens})
    return rows


def effort_table(result: Result) -> Table:
    """Time and tokens of an answer, a row for each contestant."""
    rows = [
        [name, str(n), *("–" if value is None else f"{value:.0f}" for value in figures)]
        for name, n, *figures in (effort.values() for effort in efforts(result))
    ]
    return ["effort of an answer", "n", "ms, median", "ms, p95", "tokens in", "tokens out"], rows


def answers_text(result: Result) -> str:
    """All known measures by contestant and group, the differences, and the failures."""
    tables = [*(measure_table(result, name) for name in result.contestants), kind_table(result), effort_table(result)]
    lines = [line for table in tables if table[1] for line in (*as_table(*table), "")]
    if note := result.config.get("note"):
        lines += [note, ""]
    for comparison in result.comparisons:
        lines += [comparison_text(comparison), ""]
    lines.append(f"Intervals are 95 % and resample pages. Judge: {result.config.get('judge') or 'none'}.")
    lost = Counter(
        (outcome.contestant, step) for outcome in result.outcomes for step in outcome.details["failed_steps"]
    )
    lines += [
        f"{name}: {step} failed on {n} questions, which were answered without it." for (name, step), n in lost.items()
    ]
    if result.failed or result.malformed:
        lines.append(
            f"FAILED: {len(result.failed)} answers, {result.malformed} judgements. Run it again: it asks only these again."
        )
        lines += [f"The first error: {outcome.error}" for outcome in result.failed[:1]]
    return "\n".join(lines)
