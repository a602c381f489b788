"""Queries of the question log for a report of gaps. The database counts, so that a million questions need little memory here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    text,
    true,
)

from app.conversations.question_log import Asked
from app.conversations.records import LoggedQuestion
from app.conversations.tables import questions

T = TypeVar("T")

SECONDS = 120
"""Longest time of one statement: they read the whole period."""
MOST_ELSEWHERE = 1_000
"""Sections in another language than their questions that are read."""
AT_ONCE = 500
ANSWERED = ("written", "marked", "looped", "turned", "extractive")
REFUSED = ("refused", "recited", "unproven")
FIELDS = [field.name for field in fields(LoggedQuestion)]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """Questions with this outcome in this language. `down` are those rated down, `weak` those with little evidence."""

    outcome: str
    language: str
    count: int
    weak: int
    down: int
    failed: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """A question that failed at least once, in the period or before; `newest` is the number of its last failure.

    `count` is how often it was asked, also with a good answer. `failed_before` is of the time before, the other numbers are of
    the period. `first` and `last` are of failures, in seconds since 1970; `first` is None if it didn't fail in the period.
    """

    digest: str
    newest: int
    count: int
    refused: int
    weak: int
    down: int
    failed: int
    failed_before: int
    first: float | None
    last: float


def outcome_counts(connection: Connection, asked: Asked) -> Sequence[OutcomeCount]:
    """The questions by outcome and language."""
    q = questions.c
    counts = (func.count(), _sum(_weak(asked)), _sum(q.rating == "down"), _sum(_failed(asked)))
    query = select(q.outcome, q.language, *counts).where(*_in(asked)).group_by(q.outcome, q.language)
    return [OutcomeCount(*row) for row in _rows(connection, query)]


def different(connection: Connection, asked: Asked) -> tuple[int, int]:
    """Counts the different questions, and those that failed at least once."""
    digest, failed = questions.c.digest, func.max(case((_failed(asked), 1), else_=0)).label("failed")
    grouped = select(digest, failed).where(*_in(asked)).group_by(digest).subquery()
    (row,) = _rows(connection, select(func.count(), func.sum(grouped.c.failed)).select_from(grouped))
    return int(row[0]), int(row[1] or 0)


def count_before(connection: Connection, asked: Asked) -> tuple[int, int, float]:
    """The questions and the failures of the time before, and when the first question of the whole log was asked (0: none)."""
    before = replace(asked, since=asked.before, until=asked.since)
    (row,) = _rows(connection, select(func.count(), _sum(_failed(before))).where(*_in(before)))
    (first,) = _rows(connection, select(func.min(questions.c.created)))
    return int(row[0]), int(row[1] or 0), float(first[0] or 0)


def failures(connection: Connection, asked: Asked, limit: int, *, before: bool = False) -> Sequence[Repeated]:
    """The questions that failed most often in the period, with how often they failed before.

    With `before`, those that failed most often before the period, and not in it.
    """
    q, now = questions.c, questions.c.created >= asked.since
    in_period, earlier = _sum(now), _sum(q.created < asked.since)
    wanted, order = ([in_period == 0], earlier) if before else ([in_period > 0], in_period)
    query = (
        select(
            q.digest,
            func.max(q.number),
            _sum(and_(now, q.outcome.in_(REFUSED))),
            _sum(and_(now, _weak(asked))),
            _sum(and_(now, q.rating == "down")),
            in_period,
            earlier,
            func.min(case((now, q.created))),
            func.max(q.created),
        )
        .where(*_in(replace(asked, since=asked.before)), _failed(asked))
        .group_by(q.digest)
        .having(*wanted)
        .order_by(order.desc(), q.digest)
        .limit(limit)
    )
    rows = _rows(connection, query)
    asked_often = {} if before else _counts(connection, asked, [row[0] for row in rows])
    return [Repeated(digest, newest, asked_often.get(digest, 0), *more) for digest, newest, *more in rows]


def _counts(connection: Connection, asked: Asked, digests: Sequence[str]) -> dict[str, int]:
    """Counts how often these questions were asked in the period, also with a good answer."""
    q = questions.c
    query = select(q.digest, func.count()).where(*_in(asked), q.digest.in_(bindparam("digests", expanding=True)))
    return dict(_rows(connection, query.group_by(q.digest), {"digests": list(digests)})) if digests else {}


def rows_of(connection: Connection, numbers: Sequence[int]) -> dict[int, LoggedQuestion]:
    """The logged questions with these numbers."""
    questions_by_number = {}
    query = select(questions).where(questions.c.number.in_(bindparam("numbers", expanding=True)))
    for start in range(0, len(numbers), AT_ONCE):
        for row in _rows(connection, query, {"numbers": list(numbers[start : start + AT_ONCE])}):
            values = row._mapping  # noqa: SLF001  # its public name
            questions_by_number[row.number] = LoggedQuestion(**{name: values[name] for name in FIELDS})
    return questions_by_number


def elsewhere(connection: Connection, asked: Asked) -> Sequence[tuple[str, str, int]]:
    """Answered questions by language and nearest section, where that is in another language; the most frequent ones."""
    q = questions.c
    url, language = (q.nearest[name].as_string() for name in ("url", "language"))
    query = (
        select(q.language, url, func.count())
        .where(*_in(asked), q.outcome.in_(ANSWERED), language != q.language, q.language != "")
        .group_by(q.language, url, language)
        .order_by(func.count().desc(), url, q.language)
        .limit(MOST_ELSEWHERE)
    )
    return _rows(connection, query)


def used_addresses(connection: Connection, asked: Asked) -> set[str]:
    """The addresses of all sources shown, each once."""
    postgresql = connection.dialect.name == "postgresql"
    elements = func.json_array_elements_text if postgresql else func.json_each
    address = elements(questions.c.used).table_valued("value")
    query = select(address.c.value).distinct().select_from(questions.join(address, true())).where(*_in(asked))
    return {str(row[0]) for row in _rows(connection, query)}


def rated_up(connection: Connection, asked: Asked, digests: Sequence[str]) -> dict[str, Sequence[str]]:
    """The sources of the newest answer that was rated up, for those of these questions that have one."""
    q, used_by_digest = questions.c, dict[str, Sequence[str]]()
    query = select(q.digest, q.used).where(
        *_in(asked), q.rating == "up", q.digest.in_(bindparam("digests", expanding=True))
    )
    for start in range(0, len(digests), AT_ONCE):
        part = {"digests": list(digests[start : start + AT_ONCE])}
        used_by_digest |= {digest: used for digest, used in _rows(connection, query.order_by(q.number), part) if used}
    return used_by_digest


def newest_of_each(connection: Connection, asked: Asked, only: str, limit: int) -> Sequence[int]:
    """The number of the last row of each different question of this kind, the most frequent first.

    `only` is `all`, `refused`, `weak` or `down`.
    """
    q = questions.c
    kinds = {"refused": q.outcome.in_(REFUSED), "weak": _weak(asked), "down": q.rating == "down"}
    wanted = [kinds[only]] if only in kinds else []
    query = select(func.max(q.number)).where(*_in(asked), *wanted, q.text != "").group_by(q.digest)
    return [row[0] for row in _rows(connection, query.order_by(func.count().desc(), q.digest).limit(limit))]


def with_time(connection: Connection, query: Callable[..., T], *args: Any) -> T:
    """The result of the query, which may take longer than the others of this room."""
    if connection.dialect.name == "postgresql":
        # with the default of 4 MB, the groups of a million questions are written to disk
        connection.execute(text(f"SET LOCAL statement_timeout = '{SECONDS}s'; SET LOCAL work_mem = '64MB'"))
    return query(connection, *args)


def _rows(connection: Connection, query: Select[*tuple[Any, ...]], values: Any = None) -> Sequence[Any]:
    return connection.execute(query, values).all()


def _in(asked: Asked) -> list[ColumnElement[bool]]:
    q = questions.c
    conditions: list[ColumnElement[bool]] = [q.created >= asked.since, q.created < asked.until]
    if asked.assistant:
        conditions.append(q.assistant == asked.assistant)
    return conditions


def _weak(asked: Asked) -> ColumnElement[bool]:
    q = questions.c
    little = and_(q.evidence.is_not(None), q.evidence < cast(asked.weak, Float) * q.needed)
    return and_(q.outcome.in_(ANSWERED), func.coalesce(q.confidence < cast(asked.unsure, Float), little))


def _failed(asked: Asked) -> ColumnElement[bool]:
    return or_(questions.c.outcome.in_(REFUSED), questions.c.rating == "down", _weak(asked))


def _sum(condition: ColumnElement[bool]) -> Any:
    return cast(func.coalesce(func.sum(case((condition, 1), else_=0)), 0), Integer)
