"""GET /v1/admin/question-log: the questions as they were asked, as a list, as a file, by day, and one with its conversation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from app.conversations.question_log import Asked
from app.conversations.records import DayFigures, LoggedQuestion
from app.core.errors import RequestError, quoted
from app.http.bodies import Name, filled, unstored
from app.routes.admin.queries import QueryModel
from app.routes.admin.verdicts import VerdictBody, verdict_body
from app.routes.keeping import store_of
from app.routes.service import Service

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

AT_ONCE = 1000
"""Questions of an export that are read at a time."""
MEDIA = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}
"""Types of the files by format."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of what a spreadsheet would run; a question may be anybody's."""


class LogQuery(QueryModel):
    """Questions that are wanted."""

    model_config = ConfigDict(extra="forbid")

    since: Name = Field("30d", description="How long ago, such as 30d, 12h or 4w, or a day in ISO 8601.")
    until: Name = Field("", description="The end of the period, in the same form; empty for now.")
    assistant: Name = Field("", description="Only questions to this assistant.")
    language: Name = Field("", description="Only questions in this language.")
    key: Name = Field("", description="Only questions that this key asked; `none`: without a key.")
    outcome: Name = Field("", description="Only questions with one of these outcomes, separated by commas.")
    rating: Literal["", "up", "down", "none"] = Field("", description="Only questions whose answers were rated so.")
    q: Name = Field("", description="Words that the question has, or that begin words of it.")
    day: Name = Field("", description="Only questions of this day in UTC, in place of the period.")
    only: Literal["", "answered", "failed", "commented"] = Field(
        "",
        description="failed: refused, marked, weak or rated down, as in reports of gaps; commented: with a reader's comment.",
    )
    equal: Name = Field(
        "", description="Only questions equal to that of this id but for case, diacritics and signs at the end."
    )

    def asked(self, now: float) -> Asked:
        """The choice for the database. Raises `RequestError` that names an invalid time."""
        outcomes = tuple(filter(None, self.outcome.split(",")))
        period = Asked.read(self.since, self.until, now, self.assistant)
        about = replace(period.on(self.day) if self.day else period, language=self.language, outcomes=outcomes)
        return replace(about, key=self.key, rating=self.rating, text=self.q, only=self.only, equal=self.equal)


class ListQuery(LogQuery):
    """Questions that are wanted, and how many."""

    after: int = Field(0, ge=0, lt=2**63, description="Number of the last question before.")
    limit: int = Field(50, ge=1, le=AT_ONCE, description="Number of questions to return.")
    folded: bool = Field(
        default=False, description="Of equal questions only the newest, with their count; not in files."
    )
    format: Literal["json", "csv", "jsonl"] = Field(
        "json", description="As a file, csv or jsonl has all of them, from the last one on."
    )


class LoggedBody(TypedDict):
    """A question as it was asked."""

    id: str
    number: int
    asked_at: str
    question: Annotated[str, Field(description="Without what may belong to a person; empty if only digests are kept.")]
    assistant: str
    language: str
    outcome: str
    pages: Annotated[Sequence[str], Field(description="Addresses of the sources shown.")]
    nearest: Annotated[str, Field(description="Address of the nearest section, also of a refused question; or empty.")]
    rating: Literal["up", "down", ""]
    key: Annotated[str, Field(description="Name of the key that asked; empty without one, and of a person.")]
    tokens: Annotated[int, Field(description="Tokens of all calls to language models.")]
    comments: Annotated[Sequence[str], Field(description="Comments of readers on the answers, the newest first.")]
    count: Annotated[int, Field(description="How many equal questions a folded one stands for.")]
    down: Annotated[int, Field(description="How many of them were rated down.")]


class LogList(TypedDict):
    """Logged questions, the newest first."""

    object: Literal["list"]
    log: Annotated[Literal["text", "hashed", "off"], Field(description="DOCS_QUESTION_LOG.")]
    retention_days: int
    assistants: Sequence[str]
    languages: Sequence[str]
    keys: Annotated[Sequence[str], Field(description="Names of the keys that exist now.")]
    data: list[LoggedBody]
    next: Annotated[str | None, Field(description="Address of the next questions; null at the end.")]


class DayList(TypedDict):
    """The days on which something was asked, the oldest first."""

    object: Literal["list"]
    data: Sequence[DayFigures]


class LoggedTurn(TypedDict):
    """A question with its answer, as they are kept."""

    id: str
    question: str
    answer: str
    language: str
    outcome: str


class LoggedConversation(TypedDict):
    """A logged question, with the conversation up to its answer where that is kept; the oldest turn first."""

    object: Literal["logged_question"]
    question: LoggedBody
    turns: list[LoggedTurn]
    verdict: Annotated[VerdictBody | None, Field(description="What an editor says of the answer.")]


@dataclass(frozen=True)
class LoggedQuestions:
    """The handlers of the routes."""

    service: Service

    def _store(self) -> ConversationStore:
        return store_of(self.service, "no_log")

    async def list_all(self, request: Request, query: Annotated[ListQuery, Query()]) -> Response:
        """A part of the questions, or all of them as a file."""
        store = self._store()
        asked = query.asked(store.clock())
        if query.format != "json":
            return _file(query.format, _parts(store, asked, query.after))
        part = await store.listed(asked, query.after, query.limit, folded=query.folded)
        if part is None:
            raise RequestError(f"after: there is no question with the number {query.after}.", param="after")
        following = urlencode({**request.query_params, "after": part.data[-1].number}) if part.has_more else ""
        settings = self.service.settings
        body: LogList = {
            "object": "list",
            "log": settings.question_log,
            "retention_days": settings.retention_days,
            "assistants": [assistant.id for assistant in self.service.assistants.listed()],
            "languages": settings.languages,
            "keys": self.service.keys.names(),
            "data": [_row(one) for one in part.data],
            "next": f"v1/admin/question-log?{following}" if following else None,
        }
        return unstored(body)

    async def days(self, query: Annotated[LogQuery, Query()]) -> Response:
        """The figures of each day."""
        store = self._store()
        return unstored(DayList(object="list", data=await store.by_day(query.asked(store.clock()))))

    async def one(self, id: str) -> Response:  # noqa: A002  # as in the path
        """One question with its conversation. A log without texts shows none of those that are kept for readers, either."""
        store = self._store()
        if (found := await store.logged(id)) is None:
            raise RequestError(f"The log has no question {quoted(id)}, or not any more.", code="answer_not_found")
        question, turns = found
        told = [filled(LoggedTurn, turn) for turn in turns] if question.text else []
        given = await store.verdict_on(id)
        body: LoggedConversation = {
            "object": "logged_question",
            "question": _row(question),
            "turns": told,
            "verdict": verdict_body(given) if given else None,
        }
        return unstored(body)


def _row(one: LoggedQuestion) -> LoggedBody:
    at = datetime.fromtimestamp(one.created, UTC).isoformat(timespec="seconds")
    nearest = str(one.nearest.get("url", ""))
    return filled(LoggedBody, one, asked_at=at, question=one.text, pages=one.used, nearest=nearest)


async def _parts(store: ConversationStore, asked: Asked, after: int) -> AsyncIterator[list[LoggedBody]]:
    """All questions after this one, a part at a time; they end early if the last one is deleted meanwhile."""
    more = True
    while more and (part := await store.listed(asked, after, AT_ONCE)):
        yield [_row(one) for one in part.data]
        more, after = part.has_more, part.data[-1].number if part.data else 0


def _file(kind: Literal["csv", "jsonl"], parts: AsyncIterator[list[LoggedBody]]) -> Response:
    """The questions as a file that is made while it is read."""

    async def lines() -> AsyncIterator[str]:
        if kind == "csv":
            yield "\ufeff" + _csv((), head=True)  # the mark tells Excel that this is UTF-8
        async for part in parts:
            yield _csv(part) if kind == "csv" else "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in part)

    headers = {"content-disposition": f'attachment; filename="questions.{kind}"', "cache-control": "no-store"}
    return StreamingResponse(lines(), media_type=MEDIA[kind], headers=headers)


def _csv(rows: Iterable[LoggedBody], *, head: bool = False) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(LoggedBody.__annotations__))
    if head:
        writer.writeheader()
    for row in rows:
        values = {**row, "pages": " ".join(row["pages"]), "comments": " | ".join(row["comments"])}
        writer.writerow({name: f"'{one}" if str(one).startswith(FORMULA) else one for name, one in values.items()})
    return text.getvalue()
