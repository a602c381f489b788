"""Keeps an answer: at its end, before the client gets the end, so that its next question finds it."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
from starlette.datastructures import Headers

from app.api.conversations.place import Place
from app.api.middleware.requestlog import RequestInfo
from app.api.service import Service
from app.citing.links import page_title
from app.conversations.records import Found, KeptAnswer
from app.core.record import AnswerRecord
from app.core.settings import Settings
from app.core.turn import Turn

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

MAX_READER = 200


def new_answer_id(service: Service, info: RequestInfo) -> str:
    """An id for an answer: that of the request, made unique and unguessable if the client chose it and it is kept."""
    return f"{info.id}-{secrets.token_hex(8)}" if info.chosen and service.conversations else info.id


def keeping_of(
    service: Service, headers: Headers, place: Place, record: AnswerRecord, asked: tuple[str, str]
) -> Keeping | None:
    """What keeps the answer of this record; None if it isn't to be kept. `asked` is the id of the answer and the question."""
    if not (place.kept and service.conversations):
        return None
    return Keeping(service.conversations, place, record, *asked, reader=_reader(headers, service.settings))


@dataclass
class Keeping:
    """Keeps one answer, once."""

    store: ConversationStore
    place: Place
    record: AnswerRecord
    id: str
    question: str
    reader: str = ""
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
            language=record.language or (record.turn.language if record.turn else ""),
            outcome=outcome,
            generation=generation.info.id if generation else None,
            reader=self.reader,
            found=_found(record.turn) if record.turn and self.store.question_log else None,
        )


def _found(turn: Turn) -> Found:
    """What the question log gets of a turn."""
    hit = next(iter(turn.hits or turn.related), None)
    nearest = (
        {}
        if hit is None
        else {
            "url": hit.chunk.link,
            "title": page_title(hit.chunk),
            "section": " > ".join(hit.chunk.heading_path),
            "language": hit.chunk.language,
            "score": round(hit.fused, 4),
        }
    )
    vector = b"" if turn.vector is None else np.asarray(turn.vector, np.float16).tobytes()
    recipe = turn.generation.info.recipe if turn.generation else None
    return Found(turn.evidence, turn.evidence_needed, nearest, vector, recipe.embedder if recipe else "")


def _reader(headers: Headers, settings: Settings) -> str:
    """What Open WebUI says of its user, as far as DOCS_KEEP_USER keeps it."""
    if settings.keep_user == "none":
        return ""
    return unquote(headers.get(f"x-openwebui-user-{settings.keep_user}", ""))[:MAX_READER]
