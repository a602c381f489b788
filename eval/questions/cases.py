"""Question sets: JSONL or CSV files read into cases, every mistake named with its file and line.

Fields: question, doc and lang must be there; id, variant, cross, also, answer and evidence may be. A conversation has
messages instead of the question, the last one of the user, and may have its question spelled out as standalone.
Unknown fields are left alone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.core.turn import Message
from eval.errors import EvaluationError
from eval.files import Required, Row, Text, json_lines, parse_row, read_text

LIMIT_SEED = 0
HALVES = {"even": 0, "odd": 1}
CHIT_CHAT = "chit-chat"  # a kind of unanswerable question: a friendly reply is as right as a refusal


@dataclass(frozen=True, slots=True)
class Case:
    """One question with the page that answers it.

    `doc` and `also` are paths of files or pages, or whole addresses; a hit on any of them is right.
    `variant` is a way of asking ("1" full, "2" detail, "3" hurried, "4" keywords, or any name);
    `cross` marks a question whose page exists only in another language than the question's. `earlier` is the
    conversation before the question, `standalone` the question spelled out so that it needs none.
    """

    id: str
    language: str
    question: str
    doc: str
    variant: str = ""
    cross: bool = False
    also: tuple[str, ...] = ()
    answer: str = ""
    evidence: str = ""
    earlier: tuple[Message, ...] = ()
    standalone: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What a client would send."""
        return (*self.earlier, Message("user", self.question))

    @property
    def relevant(self) -> tuple[str, ...]:
        """Every document that counts as a hit, the intended one first, none twice."""
        return tuple(dict.fromkeys((self.doc, *self.also)))


def load_cases(path: str | Path) -> tuple[Case, ...]:
    """The cases of a .jsonl or .csv file in its order. Raises `EvaluationError` naming file and line."""
    path = Path(path)
    rows = {".jsonl": json_lines, ".csv": _csv_rows}.get(path.suffix.lower())
    if rows is None:
        raise EvaluationError(f"{path}: a question set is a .jsonl or a .csv file.")
    cases: list[Case] = []
    seen: dict[str, str] = {}
    for where, row in rows(path):
        case = _case(where, row)
        if case.id in seen:
            raise EvaluationError(f"{where}: the id {case.id!r} was used before, in {seen[case.id]}.")
        seen[case.id] = where
        cases.append(case)
    if not cases:
        raise EvaluationError(f"{path}: there is no question in it.")
    return tuple(cases)


def load_questions(path: str | Path, unanswerable: str | Path = "") -> tuple[Case, ...]:
    """The cases of a set, and after them those that the documentation doesn't answer: they have no `doc`."""
    return (*load_cases(path), *(load_unanswerable(unanswerable) if unanswerable else ()))


def load_unanswerable(path: str | Path) -> tuple[Case, ...]:
    """Questions (id, lang, question, kind) that no page answers."""
    rows = (parse_row(_UnanswerableRow, where, row) for where, row in json_lines(path))
    return tuple(Case(row.id, row.lang, row.question, doc="", variant=row.kind) for row in rows)


def sample(cases: Sequence[Case], limit: int) -> tuple[Case, ...]:
    """At most `limit` of the cases, drawn from the whole set but always the same ones, in their order."""
    if limit >= len(cases):
        return tuple(cases)
    chosen = random.Random(LIMIT_SEED).sample(range(len(cases)), limit)  # noqa: S311 — a sample, no secret
    return tuple(cases[i] for i in sorted(chosen))


def after_another(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases, each asked behind another one's question and answer: of its language, and of other pages.

    Always the same ones; a follow-up is asked as it is spelled out. Left out are those that no other one could precede.
    """
    alone = [replace(case, question=case.standalone or case.question, earlier=()) for case in cases]
    asked = []
    for i, case in enumerate(alone):
        begin = i + len(alone) // 2  # neighbours are about one thing
        others = (alone[n % len(alone)] for n in range(begin, begin + len(alone)))
        fits = (o for o in others if o.language == case.language and not set(o.relevant) & set(case.relevant))
        if other := next(fits, None):
            said = (Message("user", other.question), Message("assistant", other.answer or "…"))
            asked.append(replace(case, earlier=said))
    return tuple(asked)


def half(cases: Sequence[Case], name: str) -> tuple[Case, ...]:
    """Every second of the cases, counted from 0: the even or the odd ones. What is chosen on one is judged on the other."""
    return tuple(cases[HALVES[name] :: 2])


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row:
                raise EvaluationError(f"{where}: the row has more fields than the header names.")
            also = [doc for doc in (row.get("also") or "").split(";") if doc.strip()]
            yield where, {name: value for name, value in row.items() if value} | {"also": also}
    except csv.Error as error:
        raise EvaluationError(f"{path}:{reader.line_num}: this is no valid CSV ({error}).") from error


class _UnanswerableRow(Row):
    id: Required
    lang: Required
    question: Required
    kind: Text = ""


class _MessageRow(Row):
    role: Required
    content: Required


class _CaseRow(Row):
    question: Required
    doc: Required
    lang: Required
    id: Text = ""
    variant: Text = ""
    cross: bool = False
    also: tuple[Required, ...] = ()
    answer: Text = ""
    evidence: Text = ""
    messages: tuple[_MessageRow, ...] = ()
    standalone: Text = ""


def _case(where: str, row: Mapping[str, Any]) -> Case:
    conversation = row.get("messages")
    if isinstance(conversation, list) and conversation and isinstance(conversation[-1], dict):
        row = {**row, "question": conversation[-1].get("content")}
    read = parse_row(_CaseRow, where, row)
    if read.messages and read.messages[-1].role != "user":
        raise EvaluationError(f"{where}: the last of the 'messages' must be the question of the user.")
    earlier = tuple(Message(message.role, message.content) for message in read.messages[:-1])
    texts = (*(message.content for message in earlier), read.question)
    return Case(
        # by content: a row added before changes no other id
        id=read.id or hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12],
        language=read.lang,
        question=read.question,
        doc=read.doc,
        variant=read.variant,
        cross=read.cross,
        also=read.also,
        answer=read.answer,
        evidence=read.evidence,
        earlier=earlier,
        standalone=read.standalone,
    )
