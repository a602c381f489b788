"""Reads question sets from JSONL or CSV files; errors name file and line.

Required fields: question, lang, and doc or avoid; optional: id, variant, cross, also, answer and evidence. A conversation has
messages instead of the question, the last one from the user, and may have the complete question as standalone. Unknown
fields are ignored.
"""

import csv
import hashlib
import io
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.turn import Message
from eval.files import EvaluationError, Required, Row, Text, json_lines, parse_row, read_text

LIMIT_SEED = 0
LISTS = ("also", "avoid")
"""Columns of a table that have several pages, divided by semicolons."""
CHIT_CHAT = "chit-chat"  # a kind of unanswerable question: a friendly reply is right too


@dataclass(frozen=True, slots=True)
class Case:
    """One question with the page that answers it.

    `doc` and `also` are paths of files or pages, or whole addresses; finding any of them is right, and beginning with one of `avoid` is
    wrong. A case that only has pages to avoid is answered by a page that nobody has named. `variant` is a
    wording ("1" full, "2" detail, "3" hurried, "4" keywords, or any name); `cross` marks a question whose page exists
    only in another language. `earlier` is the conversation before the question, `standalone` the question in a form
    that needs no conversation.
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
    avoid: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that a client would send."""
        return (*self.earlier, Message("user", self.question))

    @property
    def relevant(self) -> tuple[str, ...]:
        """Every right document, the intended one first, each once; none if nobody has named it."""
        return tuple(dict.fromkeys(filter(None, (self.doc, *self.also))))

    @property
    def answerable(self) -> bool:
        """False if the documentation doesn't answer the question, so that it is to be refused."""
        return bool(self.doc or self.avoid)


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
        raise EvaluationError(f"{path}: it contains no question.")
    return tuple(cases)


def load_unanswerable(path: str | Path) -> tuple[Case, ...]:
    """Questions (id, lang, kind, and question or messages) that no page answers."""
    rows = (parse_row(_UnanswerableRow, where, _asked(row)) for where, row in json_lines(path))
    return tuple(
        Case(row.id, row.lang, row.question, doc="", variant=row.kind, earlier=_earlier(row.messages)) for row in rows
    )


def sample(cases: Sequence[Case], limit: int) -> tuple[Case, ...]:
    """At most `limit` of the cases, drawn from the whole set; the same ones each time, in their order."""
    if limit >= len(cases):
        return tuple(cases)
    chosen = random.Random(LIMIT_SEED).sample(range(len(cases)), limit)  # noqa: S311 — a sample, no secret
    return tuple(cases[i] for i in sorted(chosen))


def _csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row:
                raise EvaluationError(f"{where}: the row has more fields than the header names.")
            lists = {name: [doc for doc in (row.get(name) or "").split(";") if doc.strip()] for name in LISTS}
            yield where, {name: value for name, value in row.items() if value} | lists
    except csv.Error as error:
        raise EvaluationError(f"{path}:{reader.line_num}: this is no valid CSV ({error}).") from error


class _MessageRow(Row):
    role: Required
    content: Required


class _UnanswerableRow(Row):
    id: Required
    lang: Required
    question: Required
    kind: Text = ""
    messages: tuple[_MessageRow, ...] = ()


class _CaseRow(Row):
    question: Required
    lang: Required
    doc: Text = ""
    id: Text = ""
    variant: Text = ""
    cross: bool = False
    also: tuple[Required, ...] = ()
    avoid: tuple[Required, ...] = ()
    answer: Text = ""
    evidence: Text = ""
    messages: tuple[_MessageRow, ...] = ()
    standalone: Text = ""


def _asked(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with the last message of its conversation as the question."""
    conversation = row.get("messages")
    if isinstance(conversation, list) and conversation and isinstance(conversation[-1], dict):
        return {**row, "question": conversation[-1].get("content")}
    return row


def _earlier(messages: Sequence[_MessageRow]) -> tuple[Message, ...]:
    return tuple(Message(message.role, message.content) for message in messages[:-1])


def _case(where: str, row: Mapping[str, Any]) -> Case:
    read = parse_row(_CaseRow, where, _asked(row))
    if not (read.doc or read.avoid):
        raise EvaluationError(f"{where}: 'doc' is missing or empty.")
    if read.messages and read.messages[-1].role != "user":
        raise EvaluationError(f"{where}: the last of the 'messages' must be the question of the user.")
    earlier = _earlier(read.messages)
    texts = (*(message.content for message in earlier), read.question)
    return Case(
        # by content, so that another row changes no id
        id=read.id or hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12],
        language=read.lang,
        earlier=earlier,
        **read.model_dump(exclude={"id", "lang", "messages"}),
    )
