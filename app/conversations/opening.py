"""Opens the database that the settings name; loads SQLAlchemy only if something is to be kept."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import AssistantError, DatabaseError, DatabaseTooNew
from app.core.language import vocabulary, with_words
from app.core.log_message import LogMessage
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.conversations.store import ConversationStore

log = logging.getLogger("app.conversations")


def open_conversations(settings: Settings, folder: Path) -> ConversationStore | None:
    """The conversations; None if DOCS_RETENTION_DAYS is 0. `folder` is that of the index.

    One that can't be reached or used is tried again at the next use. Raises `DatabaseTooNew`, or `SettingsError` for an
    invalid address.
    """
    if not settings.retention_days:
        return None
    from app.conversations.database import Database, url_of
    from app.conversations.queries import QuestionLog
    from app.conversations.store import ConversationStore

    database = Database(url_of(settings.database, folder))
    log_ = None
    if settings.question_log != "off":
        words = vocabulary(with_words(settings.languages, settings.prompts), settings.prompts)
        log_ = QuestionLog(hashed=settings.question_log == "hashed", words=words)
    store = ConversationStore(database, settings.retention_days, question_log=log_)
    try:
        store.prepare()
    except DatabaseTooNew:
        database.close()
        raise
    except DatabaseError as error:
        log.warning(LogMessage("conversations can't be kept at the moment; answers go on", error=error))
    return store


@dataclass(frozen=True, slots=True)
class Kept:
    """State of what is kept: for how many `days`, where, and the number of `answers`; `problem` is empty if it works."""

    days: int
    database: str = ""
    answers: int | None = None
    problem: str = ""


def look(settings: Settings, folder: Path) -> Kept:
    """Returns what is kept at the moment. Changes nothing, and makes no database."""
    if not settings.retention_days:
        return Kept(0)
    from app.conversations.database import Database, url_of

    state = Kept(settings.retention_days)
    try:
        with closing(Database(url_of(settings.database, folder))) as database:
            state = replace(state, database=database.name)
            return replace(state, answers=database.count())
    except AssistantError as error:
        return replace(state, problem=str(error))
