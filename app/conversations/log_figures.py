"""Queries of the question log: its list, its figures by day, and those of a report of gaps. The database counts, so that a
million questions need little memory here.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

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
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.sql.visitors import replacement_traverse

from app.conversations.queries import turns_until
from app.conversations.question_log import SECONDS, Asked, iso
from app.conversations.records import DOUBTED, REFUSED, DayFigures, KeptAnswer, LoggedQuestion, Part, PeriodFigures
from app.conversations.tables import TEXT_WORDS, answers, feedback, questions

MOST_ELSEWHERE = 1_000
"""Sections in another language than their questions that are read."""
AT_ONCE = 500
DAY = SECONDS["d"]
DAYS_AT_ONCE = 100
"""Days in one statement: SQLite takes 500."""
NEWEST = 10_000
"""Questions whose text is looked at before the index of words is."""
_WORD = re.compile(r"[^\W_]+")
UNSUPPORTED = ("marked", "unproven")
ANSWERED = ("written", "looped", "turned", "extractive", *DOUBTED)
FIELDS = [field.name for field in fields(LoggedQuestion) if field.name in questions.c]


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    """Questions with this outcome in this language, and how many of them failed, by reason as in `Repeated`."""

    outcome: str
    language: str
    count: int
    refused: int
    unsupported: int
    weak: int
    down: int
    failed: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """A question that failed at least once, in the period or before; `newest` is the number of its last failure.

    `count` is how often it was asked, also with a good answer. `refused` are those that no page answers, `unsupported` the answers
    that their passages don't prove, `weak` others in doubt, `down` what was rated down. `failed_before`
    is of the time before, the other numbers are of the period. `first` and `last` are of failures, in seconds since 1970; `first` is None if it didn't fail in the period.
    """

    digest: str
    newest: int
    count: int
    refused: int
    unsupported: int
    weak: int
    down: int
    failed: int
    failed_before: int
    first: float | None
    last: float


def listed(
    connection: Connection, asked: Asked, after: int, limit: int, *, folded: bool = False
) -> Part[LoggedQuestion] | None:
    """Up to `limit` logged questions, the newest first, that come after that of this number; None if there is none of it.

    `folded`: of equal ones only the newest, which says how many they are, with the comments on all of them.
    """
    q, place = questions.c, (questions.c.created, questions.c.number)
    query = select(*place).where(*_in(asked)).order_by(*(column.desc() for column in place))
    if after:
        last = connection.execute(select(*place).where(q.number == after)).first()
        if last is None:
            return None
        query = query.where(tuple_(*place) < tuple_(*map(literal, last)))
    if folded:
        query = query.where(~_newer_equal(connection, asked))
    numbers = [row.number for row in _newest(connection, query, asked, limit + 1)]
    rows = rows_of(connection, numbers[:limit])
    data = [rows[number] for number in numbers[:limit]]
    return Part(_folded(connection, asked, data) if folded else data, len(numbers) > limit)


def _folded(connection: Connection, asked: Asked, data: Sequence[LoggedQuestion]) -> list[LoggedQuestion]:
    """The questions with the counts of equal ones, and the comments on all of those."""
    q = questions.c
    having = (*_in(asked), *_with_words(connection, asked))
    count = select(q.digest, func.count(), func.count().filter(q.rating == "down")).where(*having)
    digests = [one.digest for one in data]
    query = count.where(q.digest.in_(digests)).group_by(q.digest)
    counts = {digest: (times, down) for digest, times, down in _rows(connection, query)}
    said = comments(connection, asked, "digest", digests)
    return [
        replace(one, count=times, down=down, comments=said.get(one.digest, ()) if one.text else ())
        for one in data
        for times, down in [counts[one.digest]]
    ]


def _newer_equal(connection: Connection, asked: Asked) -> ColumnElement[bool]:
    """The condition that an equal question is newer, and chosen, too. It is looked up for each question that is read, by its digest."""
    q, other = questions.c, questions.alias("other")

    def of_other(element: Any, **_: Any) -> Any:
        return other.c[element.name] if getattr(element, "table", None) is questions else None

    chosen = [replacement_traverse(one, {}, of_other) for one in (*_in(asked), *_with_words(connection, asked))]
    newer = tuple_(other.c.created, other.c.number) > tuple_(q.created, q.number)
    return select(other.c.number).where(other.c.digest == q.digest, newer, *chosen).correlate(questions).exists()


def comments(connection: Connection, asked: Asked, column: str, values: Sequence[Any]) -> dict[Any, Sequence[str]]:
    """The comments on the answers to questions whose column has one of these values, by the value, the newest first."""
    said, by = dict[Any, list[str]](), questions.c[column]
    query = select(by, feedback.c.comment).join(feedback, feedback.c.answer == questions.c.id)
    query = query.where(*_in(asked), feedback.c.comment != "", by.in_(bindparam("values", expanding=True)))
    for start in range(0, len(values), AT_ONCE):
        part = {"values": list(values[start : start + AT_ONCE])}
        for value, comment in _rows(connection, query.order_by(feedback.c.created.desc()), part):
            said.setdefault(value, []).append(comment)
    return {value: tuple(some) for value, some in said.items()}


def _with_words(connection: Connection, asked: Asked) -> list[ColumnElement[bool]]:
    """The conditions that a question has the words, or begins words with them."""
    words = _WORD.findall(asked.text)
    if connection.dialect.name != "postgresql":
        return [questions.c.text.icontains(word) for word in words]
    return [questions.c.text.regexp_match(f"(^|[^[:alnum:]]){word}", flags="i") for word in words]


def _newest(connection: Connection, query: Select[Any], asked: Asked, limit: int) -> Sequence[Any]:
    """The first rows of the query whose questions have the words.

    Of a frequent word, some are among the newest; only a rare one is looked up, as each question that has it is then read.
    """
    if not (begins := _with_words(connection, asked)):
        return _rows(connection, query.limit(limit))
    if connection.dialect.name != "postgresql":
        return _rows(connection, query.where(*begins).limit(limit))
    edge = connection.execute(query.offset(NEWEST).limit(1)).first()
    newest = [questions.c.created >= edge.created] if edge else []
    rows = _rows(connection, query.where(*newest, *begins).limit(limit))
    if edge is None or len(rows) == limit:
        return rows
    words = " & ".join(f"{word}:*" for word in _WORD.findall(asked.text))
    wanted = func.to_tsquery(literal_column("'simple'"), words)
    having = query.order_by(None).where(literal_column(TEXT_WORDS).bool_op("@@")(wanted))
    found = having.cte().prefix_with("MATERIALIZED").c
    return _rows(connection, select(found.number).order_by(found.created.desc(), found.number.desc()).limit(limit))


def cited(connection: Connection, assistant: str, limit: int) -> Counter[str]:
    """How many of the last answers of an assistant cite each page."""
    last = select(questions.c.used).where(questions.c.assistant == assistant, questions.c.outcome.in_(ANSWERED))
    rows = connection.scalars(last.order_by(questions.c.created.desc()).limit(limit))
    return Counter(url for used in rows for url in {one.partition("#")[0] for one in used})


def by_day(connection: Connection, asked: Asked) -> Sequence[DayFigures]:
    """The figures of each day with a question, the oldest first. Each is counted by itself, which saves sorting them."""
    q = questions.c
    kinds = (kind(asked, "answered"), kind(asked, "refused"), q.outcome == "marked", kind(asked, "down"))
    counts = [func.count(), *(func.count().filter(one) for one in kinds), func.coalesce(func.sum(q.tokens), 0)]
    found = list[DayFigures]()
    for days in _days(connection, asked):
        parts = [select(literal(day), *counts).where(*_in(_within(asked, day))) for day in days]
        rows: Sequence[Any] = connection.execute(union_all(*parts)).all()
        # sums of PostgreSQL are decimals
        found += [DayFigures(iso(int(day) * DAY)[:10], *map(int, row)) for day, *row in rows if row[0]]
    return sorted(found, key=lambda one: one.day)


def outcomes_by_day(connection: Connection, asked: Asked) -> Mapping[str, Mapping[str, int]]:
    """The questions of each day with one, by outcome, the oldest day first."""
    q, found = questions.c, dict[str, dict[str, int]]()
    for days in _days(connection, asked):
        parts = [
            select(literal(day), q.outcome, func.count()).where(*_in(_within(asked, day))).group_by(q.outcome)
            for day in days
        ]
        for day, outcome, count in connection.execute(union_all(*parts)):
            found.setdefault(iso(int(day) * DAY)[:10], {})[outcome] = int(count)
    return dict(sorted(found.items()))


def rated_outcomes(connection: Connection, asked: Asked) -> Mapping[tuple[str, str], int]:
    """Counts the rated answers of the period by outcome and rating."""
    q = questions.c
    query = select(q.outcome, q.rating, func.count()).where(*_in(asked), q.rating != "").group_by(q.outcome, q.rating)
    return {(outcome, rating): count for outcome, rating, count in _rows(connection, query)}


def of_period(connection: Connection, asked: Asked) -> PeriodFigures:
    """The figures of the period as a whole."""
    q = questions.c
    timed = [*_in(asked), q.ms > 0]
    counts = (
        func.count(),
        _sum(q.outcome.in_(REFUSED)),
        _sum(q.outcome == "marked"),
        func.min(q.created),
        func.max(q.created),
    )
    (row,) = _rows(connection, select(*counts).where(*_in(asked)))
    known = connection.scalar(select(func.count()).where(*timed)) or 0
    at = [max(0, math.ceil(known * share) - 1) for share in (0.5, 0.95)]
    times = [connection.scalar(select(q.ms).where(*timed).order_by(q.ms).limit(1).offset(place)) for place in at]
    return PeriodFigures(*row, *times)


def _days(connection: Connection, asked: Asked) -> Iterator[Sequence[int]]:
    """The numbers of the days of the period since the first question, as many at a time as a statement takes."""
    q = questions.c
    first = connection.scalar(select(func.min(q.created)).where(q.created >= asked.since)) or asked.until
    days = range(int(first // DAY), int(asked.until // DAY) + 1)
    for start in range(0, len(days), DAYS_AT_ONCE):
        yield days[start : start + DAYS_AT_ONCE]


def _within(asked: Asked, day: int) -> Asked:
    return replace(asked, since=max(asked.since, day * DAY), until=min(asked.until, (day + 1) * DAY))


def logged(connection: Connection, id_: str) -> tuple[LoggedQuestion, Sequence[KeptAnswer]] | None:
    """The logged question of this id, with its answer and those that it followed; None if there is none."""
    number = connection.scalar(select(questions.c.number).where(questions.c.id == id_))
    owner = connection.scalar(select(answers.c.owner).where(answers.c.id == id_))
    if number is None:
        return None
    turns = turns_until(connection, owner, id_) if owner is not None else ()
    return rows_of(connection, [number])[number], turns or ()


def outcome_counts(connection: Connection, asked: Asked) -> Sequence[OutcomeCount]:
    """The questions by outcome and language."""
    q = questions.c
    counts = (func.count(), *_reasons(asked, true()), _sum(_failed(asked)))
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
            *_reasons(asked, now),
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
    query = select(questions, feedback.c.comment).outerjoin(feedback, feedback.c.answer == questions.c.id)
    query = query.where(questions.c.number.in_(bindparam("numbers", expanding=True)))
    for start in range(0, len(numbers), AT_ONCE):
        for row in _rows(connection, query, {"numbers": list(numbers[start : start + AT_ONCE])}):
            values = row._mapping  # noqa: SLF001  # its public name
            said = (row.comment,) if row.comment and row.text else ()  # a log without texts has none
            more = {"comments": said, "down": int(row.rating == "down")}
            questions_by_number[row.number] = LoggedQuestion(**{name: values[name] for name in FIELDS} | more)
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


def asked_again(connection: Connection, asked: Asked, limit: int) -> Sequence[tuple[str, str, str, str, str]]:
    """The language, texts and ids of two questions that follow each other in a conversation: the first was
    refused or rated down, the second was answered. The newest pairs first.
    """
    q, again = questions.c, questions.alias("again")
    first, second, between = answers.c, answers.alias("second"), answers.alias("between")
    same = between.c.conversation == first.conversation
    query = (
        select(q.language, q.text, again.c.text, q.id, again.c.id)
        .join_from(questions, answers, first.id == q.id)
        .join(second, and_(second.c.conversation == first.conversation, second.c.number > first.number))
        .join(again, again.c.id == second.c.id)
        .where(*_in(asked), or_(q.outcome.in_(REFUSED), q.rating == "down"), q.text != "", again.c.text != "")
        .where(again.c.outcome.in_(ANSWERED), again.c.rating != "down", again.c.language == q.language)
        .where(~exists().where(same, between.c.number > first.number, between.c.number < second.c.number))
        .order_by(q.created.desc(), q.number.desc())
        .limit(limit)
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in _rows(connection, query)]


def newest_of_each(connection: Connection, asked: Asked, only: str, limit: int) -> Sequence[int]:
    """The number of the last row of each different question of this kind (`all`, or as in `kind`), the most frequent first."""
    q = questions.c
    query = select(func.max(q.number)).where(*_in(asked), kind(asked, only), q.text != "").group_by(q.digest)
    return [row[0] for row in _rows(connection, query.order_by(func.count().desc(), q.digest).limit(limit))]


def _rows(connection: Connection, query: Select[*tuple[Any, ...]], values: Any = None) -> Sequence[Any]:
    return connection.execute(query, values).all()


def _in(asked: Asked) -> list[ColumnElement[bool]]:
    q = questions.c
    conditions: list[ColumnElement[bool]] = [q.created >= asked.since, q.created < asked.until]
    chosen = {q.assistant: asked.assistant, q.language: asked.language, q.rating: asked.rating, q.key: asked.key}
    conditions += [column == ("" if value == "none" else value) for column, value in chosen.items() if value]
    if asked.outcomes:
        conditions.append(q.outcome.in_(asked.outcomes))
    if asked.only:
        conditions.append(kind(asked, asked.only))
    if asked.equal:
        same = questions.alias()
        conditions.append(q.digest == select(same.c.digest).where(same.c.id == asked.equal).scalar_subquery())
    return conditions


def kind(asked: Asked, only: str) -> ColumnElement[bool]:
    """The condition that a question was `answered`, `refused`, got a `weak` answer, was rated `down`, `failed` by one of the last three,
    or that a reader `commented` its answer; any other word is all.
    """
    q = questions.c
    kinds = {
        "answered": q.outcome.in_((*ANSWERED, "curated")),
        "refused": q.outcome.in_(REFUSED),
        "weak": _weak(asked),
        "down": q.rating == "down",
        "failed": _failed(asked),
        "commented": q.id.in_(select(feedback.c.answer).where(feedback.c.comment != "")),
    }
    return kinds.get(only, true())


def _weak(asked: Asked) -> ColumnElement[bool]:
    q = questions.c
    little = and_(q.evidence.is_not(None), q.evidence < cast(asked.weak, Float) * q.needed)
    return or_(q.outcome.in_(DOUBTED), and_(q.outcome.in_(ANSWERED), little))


def _failed(asked: Asked) -> ColumnElement[bool]:
    return or_(questions.c.outcome.in_(REFUSED), questions.c.rating == "down", _weak(asked))


def _reasons(asked: Asked, among: ColumnElement[bool]) -> list[Any]:
    """The sums of questions that were refused, weren't supported, were weak, and were rated down."""
    q = questions.c
    proved, refused, weak = q.outcome.not_in(UNSUPPORTED), q.outcome.in_(REFUSED), _weak(asked)
    reasons = (and_(refused, proved), and_(or_(refused, weak), ~proved), and_(weak, proved), q.rating == "down")
    return [_sum(and_(among, reason)) for reason in reasons]


def _sum(condition: ColumnElement[bool]) -> Any:
    return cast(func.coalesce(func.sum(case((condition, 1), else_=0)), 0), Integer)
