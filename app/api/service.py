"""What the routes of the API share: the assistants, the settings, the API keys and the limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import Request

from app.api.accept import named_language, preferred_language
from app.api.bodies import read_body
from app.api.middleware.admission import AnswerLimits
from app.api.middleware.keys import ApiKeys
from app.api.request_models import Body, parse
from app.core.errors import RequestError
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants


@dataclass(frozen=True)
class Service:
    """The dependencies of every route; `open_after` and `keep_alive` are in seconds (see `app.api.server.create_app`)."""

    assistants: Assistants
    settings: Settings
    keys: ApiKeys
    admins: ApiKeys
    open_after: float = 10.0
    keep_alive: float = 10.0
    limits: AnswerLimits = field(default_factory=AnswerLimits)

    async def read(self, request: Request, kind: type[Body], default: bytes = b"") -> Body:
        """The body of the request as this model, or `default` if it is blank. Raises `RequestError` if it is invalid."""
        body = await read_body(request, self.settings.max_body)
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

    def check_key(self, request: Request) -> None:
        """Raises `RequestError` without a valid key of a reader or an admin."""
        (self.admins if self.admins.key_number(request) else self.keys).check(request)

    def check_admin(self, request: Request, refused: str, *, instead: str = "", param: str | None = None) -> None:
        """Raises `RequestError` without a valid admin key, or when none is configured; then the message names what is `refused`."""
        if not self.admins.required:
            raise RequestError(
                f"{refused} over HTTP here: no admin key is set. Set DOCS_ADMIN_KEYS and start the service again{instead}.",
                param=param,
                code="admin_disabled",
            )
        self.admins.check(request)
