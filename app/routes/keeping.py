"""Keeps an answer: at its end, before the client gets the end, so that its next question finds it.

An answer belongs to the key that it was asked with, and with another key it doesn't exist. Without keys, everything belongs to the
person at this machine. In an open service, through a proxy without a key, and with the public key of a widget, an id that nobody
can guess gives access.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from starlette.requests import Request

from app.citing.links import page_title
from app.conversations.records import Found, KeptAnswer, conversation_id_of
from app.core.errors import DatabaseError, RequestError, quoted
from app.core.log_message import LogMessage
from app.core.turn import AnswerRecord, Message, Turn
from app.http.door import RequestInfo, info_of
from app.http.keys import PERSON, Access, is_local
from app.routes.request_models import ChatRequest
from app.routes.service import Service

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

log = logging.getLogger("app.http")

T = TypeVar("T")


def store_of(service: Service, code: str = "conversations_disabled") -> ConversationStore:
    """The store. Raises `RequestError` with this code if nothing is kept."""
    if service.conversations is None:
        raise RequestError("Nothing is kept here: DOCS_RETENTION_DAYS is 0.", code=code)
    return service.conversations


def is_shared(service: Service, request: Request, access: Access) -> bool:
    """True if all visitors are the same owner."""
    return access.role == "widget" or (not access.owner and (service.settings.open or not is_local(request)))


def check_listing(service: Service, request: Request, access: Access) -> None:
    """Raises `RequestError` if everybody's conversations would be listed."""
    if is_shared(service, request, access):
        raise RequestError(
            "Conversations aren't listed here, because all visitors share them: whoever has the id of a conversation reads it"
            " at /v1/conversations/ID. With a key of DOCS_API_KEYS, its own conversations are listed.",
            code="listing_refused",
        )


def found(conversation: T | None, id_: str) -> T:
    """The conversation. Raises `RequestError` if it is None."""
    if conversation is None:
        raise RequestError(
            f"Conversation with id {quoted(id_)} not found. It may have been deleted, or be older than DOCS_RETENTION_DAYS.",
            param="conversation",
            code="conversation_not_found",
        )
    return conversation


HEADER = "x-conversation-id"
THREAD = "docs_assistant.thread"
"""In the scope of a request that comes from this process, for a chat program: the name of the thread that is a conversation."""
IN_THREADS = "thread:"
"""The owner of threads without a key. No client has it: the name of a thread is no secret."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place of a question. `history` is what to put before its messages.

    `makes`: the conversation is made if there is none. `previous` is the answer that it follows outside of conversations.
    """

    owner: str
    kept: bool
    conversation: str = ""
    makes: bool = False
    previous: str = ""
    history: Sequence[Message] = ()


async def place_of_chat(service: Service, request: Request, chat: ChatRequest, unnamed: Place) -> Place:
    """The place of a question of the chat API, which is `unnamed` if it names no conversation. Raises `RequestError` for a
    conversation that its sender doesn't have.

    A client that sends what was said before needs no history of ours.
    """
    owner, store, headers = unnamed.owner, service.conversations, request.headers
    id_ = chat.conversation_id or headers.get(HEADER, "")
    if store is None:
        check_unused("conversation" if chat.conversation_id else HEADER, id_, "messages")
        return Place(owner, kept=False)
    kept = chat.store is not False
    if thread := request.scope.get(THREAD):
        owner = owner or IN_THREADS
        id_ = conversation_id_of(owner, thread)
        return Place(owner, kept, id_, makes=True, history=messages_of(await store.turns_of(owner, id_) or ()))
    if not id_:
        return unnamed
    if sum(message.role in ("user", "assistant") for message in chat.messages) > 1:
        try:
            found(await store.conversation(owner, id_), id_)
        except DatabaseError as error:  # the answer doesn't need it; but nothing says whose conversation it is
            log.warning(LogMessage("an answer is not kept", error=error))
            return Place(owner, kept=False)
        return Place(owner, kept, id_)
    turns = found(await store.turns_of(owner, id_), id_)
    return Place(owner, kept, id_, history=messages_of(turns))


def check_unused(param: str, value: str, field: str) -> None:
    """Raises `RequestError` for a field that names what nothing keeps."""
    if value:
        raise RequestError(
            f"{param}: nothing is kept here, because DOCS_RETENTION_DAYS is 0; send the whole conversation as {field}.",
            param=param,
        )


def messages_of(turns: Iterable[KeptAnswer]) -> Sequence[Message]:
    """The conversation so far, without questions that got no answer."""
    return [
        message
        for turn in turns
        if turn.answer
        for message in (Message("user", turn.question), Message("assistant", turn.answer))
    ]


def new_answer_id(service: Service, info: RequestInfo) -> str:
    """An id for an answer: that of the request, made unique and unguessable if the client chose it and it is kept."""
    return f"{info.id}-{secrets.token_hex(8)}" if info.chosen and service.conversations else info.id


def keeping_of(
    service: Service, request: Request, place: Place, record: AnswerRecord, asked: tuple[str, str], reader: str = ""
) -> Keeping | None:
    """Returns the keeper of this record's answer; None if it isn't to be kept. `asked` is the id of the answer and the question."""
    if not (place.kept and service.conversations):
        return None
    # the log doesn't say which person asked
    key = "" if place.owner.startswith(PERSON) else info_of(request).fields.get("key", "")
    return Keeping(service.conversations, place, record, *asked, reader=reader, key=key)


@dataclass
class Keeping:
    """Keeps one answer, once."""

    store: ConversationStore
    place: Place
    record: AnswerRecord
    id: str
    question: str
    reader: str = ""
    key: str = ""
    _done: bool = False

    async def ended(self) -> None:
        """Write the answer, whose last event the record has; waits for the database, but only a moment."""
        if answer := self._answer():
            await self.store.keep(answer)

    def left(self) -> None:
        """Write what there is of the answer if its client has left before the end."""
        if answer := self._answer():
            self.store.writer.add(answer)

    def _answer(self) -> KeptAnswer | None:
        record, outcome, done = self.record, self.record.outcome, self._done
        self._done = True
        if done or not outcome:  # rejected before any work
            return None
        generation = getattr(record.turn, "generation", None)
        return KeptAnswer(
            id=self.id,
            owner=self.place.owner,
            question=self.question,
            answer="".join(record.texts),
            created=time.time(),
            conversation=self.place.conversation,
            makes=self.place.makes,
            previous=self.place.previous,
            sources=tuple(record.sources),
            assistant=record.assistant,
            language=record.language or (record.turn.asked.language if record.turn else ""),
            outcome=outcome,
            verbatim=record.done.verbatim if record.done else None,
            unsupported=record.done.unsupported if record.done else (),
            generation=generation.info.id if generation else None,
            reader=self.reader,
            found=_found(record.turn, self.key, record.calls.usage.total, _milliseconds(record))
            if record.turn and self.store.question_log
            else None,
        )


def _milliseconds(record: AnswerRecord) -> int:
    """The time until the end of the answer, at least 1; 0 if it has no end."""
    return 0 if record.ended is None else max(1, round((record.ended - record.began) * 1000))


def _found(turn: Turn, key: str = "", tokens: int = 0, ms: int = 0) -> Found:
    """Returns what the question log gets of a turn, of the key that asked, and of the tokens and milliseconds of the answer."""
    hit = next(iter(turn.hits or turn.related), None)
    nearest: dict[str, Any] = {}
    if hit:
        section, score = " > ".join(hit.chunk.heading_path), round(hit.fused, 4)
        nearest = {"url": hit.chunk.link, "title": page_title(hit.chunk), "section": section, "score": score}
        nearest["language"] = hit.chunk.language
    vector = turn.search.query.vector if turn.search else None
    numbers = b"" if vector is None else np.asarray(vector, np.float16).tobytes()
    recipe = turn.generation.info.recipe if turn.generation else None
    evidence = turn.evidence
    share, needed = (evidence.share, evidence.needed) if evidence else (None, 0.0)
    return Found(share, needed, nearest, numbers, recipe.embedder if recipe else "", key, tokens, ms)
