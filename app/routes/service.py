"""The dependencies that the routes of the API share: the assistants, the settings, the API keys and the limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.core.breaker import Breaker
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.turn import AnswerRecord, Events
from app.core.turn import Request as Question
from app.http.bodies import MAX_BODY, SMALL, Bodies, Body, named_language, parse, preferred_language
from app.http.keys import Access, Keys
from app.http.limits import AnswerLimits

if TYPE_CHECKING:
    from app.assistants.answer_cache import AnswerCache
    from app.assistants.assistant import Assistant, Assistants
    from app.conversations.store import ConversationStore

SHARED_DAYS = 30


@dataclass(frozen=True)
class Service:
    """The dependencies of every route; `open_after` and `keep_alive` are in seconds (see `app.routes.server.create_app`).

    `breakers` are those of servers that only the API uses; `conversations` is None if nothing is kept, and `answer_cache` if
    each question gets a new answer.
    """

    assistants: Assistants
    settings: Settings
    keys: Keys
    open_after: float = 10.0
    keep_alive: float = 10.0
    limits: AnswerLimits = field(default_factory=AnswerLimits)
    breakers: tuple[Breaker, ...] = ()
    conversations: ConversationStore | None = None
    answer_cache: AnswerCache | None = None
    bodies: Bodies = field(default_factory=Bodies)

    def answer(self, request: Request, assistant: Assistant, asked: Question, record: AnswerRecord) -> Events:
        """As `Assistant.answer`, from the cache if there is one. `Cache-Control: no-cache` or `no-store` asks for a new answer."""
        if not self.answer_cache:
            return assistant.answer(asked, record)
        wanted = request.headers.get("cache-control", "").lower()
        if "no-store" in wanted:
            return assistant.answer(asked, record)
        return self.answer_cache.answer(assistant, asked, record, fresh="no-cache" in wanted)

    async def read(self, request: Request, kind: type[Body], default: bytes = b"", *, small: bool = True) -> Body:
        """The body of the request as this model, or `default` if it is blank. Raises `RequestError` if it is invalid.

        A `small` body has at most 64 KB; only those of questions, which bring conversations and files, may have more.
        """
        body = await self.bodies.read(request, SMALL if small else MAX_BODY)
        return parse(kind, body.strip() or default)

    def reader_language(self, request: Request, named: str | None) -> str:
        """The language that the client states for its user, in the body or by Accept-Language; empty if none is configured.

        Raises `RequestError` if the body names one that isn't configured. Clients send the header without being asked, so
        its other languages are ignored.
        """
        languages = self.settings.languages
        if not named:
            return preferred_language(request.headers.get("accept-language", ""), languages)
        return named_language(named, languages)

    @property
    def share_days(self) -> int:
        """Days for which a link to an answer works; 0 if there are none. Where a key is needed, only if somebody wants that."""
        wanted = self.settings.tuning.share_days
        days = (0 if self.keys.required else SHARED_DAYS) if wanted < 0 else wanted
        return days if self.conversations else 0

    def access(self, request: Request) -> Access:
        """Returns what the sender may do. Raises `RequestError` without a valid key, if keys are configured."""
        return self.keys.access(request)

    def allowed(self, access: Access) -> Assistants:
        """The assistants that the key may use, limited to its collections."""
        if not (access.assistants or access.collections):
            return self.assistants
        return self.assistants.within(access.assistants, access.collections)

    def assistant(self, access: Access, name: str) -> Assistant:
        """The assistant of this name, or the first one, within the limits of the key. Raises `RequestError` for another name."""
        return self.allowed(access).get(name)

    async def operator(self, request: Request) -> None:
        """Dependency of routes for admins. Raises `RequestError` for others."""
        self.check_admin(request, "Nothing can be looked at or changed")

    def check_admin(self, request: Request, refused: str, *, instead: str = "", param: str | None = None) -> Access:
        """Returns what an admin may do. Raises `RequestError` for others; without an admin key, it names what is `refused`."""
        if not (self.keys.admins or self.keys.is_open_to(request)):
            raise RequestError(
                f"{refused} over HTTP here: no admin key is set. Make one with `docs-assistant key new NAME "
                f"--role admin`, or set DOCS_ADMIN_KEYS; then start the service again{instead}.",
                param=param,
                code="admin_disabled",
            )
        return self.keys.admin(request)
