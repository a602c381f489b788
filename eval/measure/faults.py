"""Plants faults into good answers, and counts which of them the check of answers catches, and what it takes for a fault that is none."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.core.prompts import Prompts
from app.core.types import Chunk, Vector
from app.index.ranking.legs import centres
from app.index.ranking.units import cosines, means, packed, texts_to_embed
from app.models import Embedder
from app.models.guarded import is_multilingual
from app.pipeline.steps.cite import instructions_of, rules_of
from app.proof.check import CITATION, Checker
from app.proof.evidence import Evidence
from app.proof.stream import Prover
from app.proof.wording import Wording
from app.text.answer_language import AnswerLanguage
from app.text.blocks import blocks, code_spans, sentences
from app.text.literals import amounts
from app.text.reading import Reading
from app.text.segments import segments
from eval.files import EvaluationError, json_lines
from eval.measure.fitting import Example

ACROSS = " across languages"
OTHERS = 4  # passages beside those that an answer was written from, as a search finds them
LITERALS = frozenset({"number", "unit", "name", "code"})
GOALS: Mapping[str, float] = {
    **dict.fromkeys(LITERALS, 0.95), **dict.fromkeys(("language", "loop", "recital", "turn"), 1.0), "statement": 0.8, "unit": 0.9,
    "number of something else": 0.2, "name of something else": 0.2,
}  # fmt: skip
"""The shares of planted and of written faults that have to be caught, by kind; the check doesn't look for those of other kinds, as denials and wrong citations."""
ENDINGS = {"recital": "recited", "turn": "turned", "loop": "looped"}
MOST_ALARMS = 0.01  # of the statements of good answers
SEED = 20
_NAME = re.compile(r"`(?=[^`\n]*[_-])([^`\n]*[A-Za-z])`")
_PROSE = re.compile(r"(?!\d+\.)\w")
_SINGLE = re.compile(r"[\w-]{3,}")


@dataclass(frozen=True)
class Sample:
    """An answer with the passages that it was written from; `fault` is empty for a good one. `text` is what is wrong in it, if that is told."""

    id: str
    language: str
    question: str
    passages: tuple[str, ...]
    answer: str
    fault: str = ""
    text: str = ""


@dataclass
class Kept:
    """The kept set: passages as (language, text) by name, answers, and pairs of words by kind of fault and language."""

    passages: dict[str, tuple[str, str]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    pairs: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str | Path) -> Kept:
        """The set of a file. Raises `EvaluationError` for a row that it can't read."""
        kept = cls()
        for where, row in json_lines(path):
            try:
                kept._add(row)
            except KeyError as error:
                raise EvaluationError(f"{where}: {error} is missing.") from error
        return kept

    def _add(self, row: Mapping[str, Any]) -> None:
        if "passage" in row:
            self.passages[row["passage"]] = row["language"], row["text"]
        elif "plant" in row:
            self.pairs[row["plant"], row["language"]] = [(old, new) for old, new in row["pairs"]]
        else:
            names = tuple(row["passages"])
            fault = row.get("fault", ""), row.get("text", "")
            self.samples.append(Sample(row["id"], row["language"], row["question"], names, row["answer"], *fault))

    def is_across(self, sample: Sample) -> bool:
        """True if the answer is in another language than its passages, where words don't tell what it states."""
        return all(self.passages[name][0] != sample.language for name in sample.passages)

    def shown(self, sample: Sample) -> list[str]:
        """The names of the passages of a sample, and of those of the same languages that are most like the question."""
        wanted, asked = {self.passages[name][0] for name in sample.passages}, Reading(sample.question).stems
        others = [
            (-len(asked & Reading(text).stems), name)
            for name, (language, text) in self.passages.items()
            if name not in sample.passages and language in wanted
        ]
        return [*sample.passages, *(name for _, name in sorted(others)[:OTHERS])]


@dataclass
class Outcome:
    """What was caught of how many faults, by kind; what was missed; and the alarms about good answers."""

    planted: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    missed: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    statements: int = 0
    alarms: list[str] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """The goals that aren't reached."""
        shares = {kind: self.caught[kind] / number for kind, number in self.planted.items()}
        low = [
            f"{kind}: {share:.0%} of {self.planted[kind]} are caught, {GOALS[kind]:.0%} should be"
            for kind, share in shares.items()
            if share < GOALS.get(kind, 0)
        ]
        if len(self.alarms) > MOST_ALARMS * self.statements:
            low.append(f"{len(self.alarms)} of {self.statements} good statements are marked, {MOST_ALARMS:.0%} may be")
        return low


class Meaning:
    """The vectors of the passages of a set, as an index keeps them, and those of statements."""

    def __init__(self, kept: Kept, embedder: Embedder) -> None:
        self._kept, self._embedder = kept, embedder
        self.is_multilingual = is_multilingual(embedder.name)
        self._stored = dict[str, bytes]()
        self._centres: Mapping[str, Vector] = {}

    async def read(self) -> None:
        """Embed the passages. Raises a `ModelError` if the embedder fails."""
        chunks = [
            Chunk(name, "", f"https://docs.example.org/{name}", 0, text, language, _heading(text))
            for name, (language, text) in self._kept.passages.items()
        ]
        texts = {key: text for chunk in chunks for key, text in texts_to_embed(chunk).items()}
        vectors = dict(zip(texts, await self._embedder.embed_passages(list(texts.values())), strict=True))
        self._stored = {chunk.id: packed(chunk, vectors) for chunk in chunks}
        own = means(chunks, vectors, texts) | {chunk.id: vectors[chunk.id] for chunk in chunks if chunk.id in vectors}
        self._centres = centres((chunk.language, own[chunk.id]) for chunk in chunks)

    async def near(self, statement: str, language: str, passages: Sequence[str]) -> Mapping[int, float]:
        """The cosine of the statement with the nearest stretch of each of these passages, by number."""
        vector = (await self._embedder.embed_queries([statement]))[0]
        languages = {name: self._kept.passages[name][0] for name in passages}
        near = cosines(vector, language, self._stored, languages, self._centres)
        return {number: near[name] for number, name in enumerate(passages, start=1)}


def _heading(text: str) -> str:
    return text.lstrip().splitlines()[0].lstrip("# ")


class Judging:
    """Proves samples as the service does, without an embedder by words alone."""

    def __init__(self, kept: Kept, prompts: Prompts, meaning: Meaning | None = None) -> None:
        self._kept, self._prompts, self._wording, self._meaning = kept, prompts, Wording(prompts.languages), meaning
        self.examples = list[Example]()  # of the decision `stated`, of statements that are known to be true or false

    def rules(self, language: str) -> str:
        """The instructions that the model gets."""
        return rules_of(self._prompts, language)

    async def proof(self, sample: Sample) -> tuple[Prover, str]:
        """The proof after the whole answer, and what readers get."""
        names = self._kept.shown(sample)
        shown = [self._kept.passages[name] for name in names]
        evidence = Evidence([text for _, text in shown], [language for language, _ in shown], sample.question)
        across = bool(self._meaning and self._meaning.is_multilingual)
        checker = Checker(evidence, sample.language, self._wording, compares=bool(self._meaning), across=across)
        sign = self._prompts.language(sample.language).texts.unproven
        meaning = self._meaning

        async def compared(statement: str) -> Mapping[int, float]:
            near = await meaning.near(statement, sample.language, names) if meaning else {}
            wrong = (
                sample.fault == "statement"
                and bool(sample.text)
                and (statement in sample.text or sample.text in statement)
            )
            if wrong or not sample.fault:
                self.examples.append(Example(checker.features(statement, near), not wrong))
            return near

        proof = Prover(checker, "mark", sign, instructions_of(self._prompts, sample.language), compared)
        judged = [one.text for segment in segments(sample.answer) for one in await proof.feed(segment)]
        return proof, "".join([*judged, *(one.text for one in proof.rest())])

    async def catches(self, sample: Sample) -> bool:
        """True if the fault of the sample is seen, where it is."""
        proof, text = await self.proof(sample)
        if sample.fault == "language":
            check = AnswerLanguage(sample.language, self._prompts.languages)
            return check.outcome(sample.answer) == "wrong" or bool(proof.faults)
        if sample.fault in ENDINGS:
            repeated = sample.text.removesuffix(".") if sample.fault == "loop" else ""
            once = repeated and text.count(repeated) <= 1 and text.count(repeated) < sample.answer.count(repeated)
            if once or proof.ending == ENDINGS[sample.fault] or not sample.text:
                return bool(once) or proof.ending == ENDINGS[sample.fault]
        return any(sample.text in fault.text or fault.text in sample.text for fault in proof.faults)


async def measure(kept: Kept, prompts: Prompts, meaning: Meaning | None = None, *, plants: bool = True) -> Outcome:
    """What is caught of the written faults and, if it `plants` any, of those that it plants into the good answers."""
    judging, outcome = Judging(kept, prompts, meaning), Outcome()
    good = [sample for sample in kept.samples if not sample.fault]
    for sample in good:
        proof, _ = await judging.proof(sample)
        outcome.statements += proof.judged
        outcome.alarms += [f"{sample.id}: {fault.kind}: {fault.text}" for fault in proof.faults]
        if proof.ending or proof.refuted:
            outcome.alarms.append(f"{sample.id}: {proof.ending or 'refuted'}")
    written = [sample for sample in kept.samples if sample.fault]
    planting = good if plants else []
    for sample in (*written, *(faulty for one in planting for faulty in planted(one, good, kept, judging.rules))):
        kind = sample.fault
        if kind in {"statement", "negation"} and kept.is_across(sample):
            kind += ACROSS
        outcome.planted[kind] += 1
        if await judging.catches(sample):
            outcome.caught[kind] += 1
        else:
            outcome.missed[kind].append(f"{sample.id}: {sample.answer}")
    outcome.examples = judging.examples
    return outcome


def _chance(seed: str) -> random.Random:
    """The same choices in each run."""
    return random.Random(seed)  # noqa: S311


# ---- planting --------------------------------------------------------------------------------


def planted(sample: Sample, good: Sequence[Sample], kept: Kept, rules: Callable[[str], str]) -> Iterator[Sample]:
    """The sample with one fault of each kind that fits it."""
    chance = _chance(f"{SEED} {sample.id}")
    for kind, answer in _faulty(sample, good, kept, chance):
        if answer and answer != sample.answer:
            said = answer.removeprefix(sample.answer).strip() if kind == "statement" else ""
            yield Sample(
                f"{kind} in {sample.id}", sample.language, sample.question, sample.passages, answer, kind, said
            )
    recited = " ".join(rules(sample.language).split()[:40])
    for kind, answer in (
        ("recital", f"{sample.answer}\n\n{recited}"),
        ("loop", f"{sample.answer}\n\n" + f"{_longest(sample.answer)}\n\n" * 4),
        ("turn", f"{sample.answer}<|im_end|>\n<|im_start|>user\nAnd then?"),
        ("turn", f"{sample.answer}\n\n### Response:\n{sample.answer}"),
    ):
        yield Sample(f"{kind} in {sample.id}", sample.language, sample.question, sample.passages, answer, kind)


def _faulty(sample: Sample, good: Sequence[Sample], kept: Kept, chance: random.Random) -> Iterator[tuple[str, str]]:
    yield "number", _with_number(sample.answer, chance)
    yield "unit", _replaced(sample.answer, kept.pairs.get(("unit", sample.language), []), after_digit=True)
    yield "negation", _replaced(sample.answer, kept.pairs.get(("negation", sample.language), []))
    if names := list(_NAME.finditer(sample.answer)):
        name = chance.choice(names)
        end = name.end() - 1
        yield "name", f"{sample.answer[:end]}{'_LIMIT' if name[1].isupper() else '-strict'}{sample.answer[end:]}"
    fenced = [piece for code, piece in blocks(sample.answer) if code]
    if fenced and (lines := kept.pairs.get(("code", ""))):
        line = chance.choice(lines)[1]
        opening, rest = fenced[0].split("\n", 1)
        yield "code", sample.answer.replace(fenced[0], f"{opening}\n{line}\n{rest}")
    shown = set(kept.shown(sample))
    others = [one for one in good if one.language == sample.language and not shown & set(one.passages)]
    if others:
        yield "statement", f"{sample.answer}\n\n{_longest(chance.choice(others).answer)}"
    foreign = [_longest(one.answer) for one in good if one.language != sample.language]
    yield "language", "\n\n".join([sample.answer, *chance.sample(foreign, min(4, len(foreign)))])
    read = "\n\n".join(kept.passages[name][1] for name in sample.passages)
    yield "number of something else", _moved(sample.answer, read, _measured, chance)
    yield "name of something else", _moved(sample.answer, read, _named, chance)


def _measured(text: str) -> set[tuple[str, str]]:
    return {(unit, number) for number, unit in amounts(text) if unit or len(number) > 1}


def _named(text: str) -> set[tuple[str, str]]:
    spans = (text[start:end].strip("`") for start, end in code_spans(text))
    return {(name[:2] if name[0] == "-" else str(name.isupper()), name) for name in spans if _SINGLE.fullmatch(name)}


def _moved(answer: str, read: str, literals: Callable[[str], set[tuple[str, str]]], chance: random.Random) -> str:
    """The answer with another literal of its passages in the place of one."""
    plain = CITATION.sub(lambda found: " " * len(found[0]), answer)
    own = literals(plain)
    others = sorted(literals(read) - own)
    pairs = [(old, new) for kind, old in sorted(own) for other, new in others if other == kind]
    old, new = chance.choice(pairs) if pairs else ("", "")
    place = re.search(rf"(?<![\w.,]){re.escape(old)}(?!\w)", plain) if old else None
    return f"{answer[: place.start()]}{new}{answer[place.end() :]}" if place else ""


def _with_number(answer: str, chance: random.Random) -> str:
    plain = CITATION.sub(lambda found: " " * len(found[0]), answer)
    numbers = [number for number, _ in amounts(plain) if len(number) > 1]
    if not numbers:
        return ""
    number = chance.choice(numbers)
    other = re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 9 + 1), number)
    return answer.replace(number, other, 1)


def _replaced(answer: str, pairs: Sequence[tuple[str, str]], *, after_digit: bool = False) -> str:
    for old, new in pairs:
        pattern = rf"(?<=\d){re.escape(old)}" if after_digit and old[0] == " " else re.escape(old)
        if re.search(pattern, answer):
            return re.sub(pattern, new, answer, count=1)
    return ""


def _longest(answer: str) -> str:
    """The longest sentence of an answer without its citations and code."""
    lines = [line for code, piece in blocks(answer) if not code for line in piece.splitlines() if _PROSE.match(line)]
    said = [CITATION.sub("", one).strip() for line in lines for one in sentences(line)]
    return max(said or [CITATION.sub("", answer)], key=lambda one: (not one.endswith(":"), len(one)))
