"""What the API needs of the assistants behind it, and what its routes share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.requests import Request as HttpRequest

from app.api.door.admission import Limits
from app.api.door.keys import Keys
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.turn import Event, Request, Turn
from app.core.types import GenerationInfo, Page
from app.models.base import Model


class Assistant(Protocol):
    """One pipeline under the name of a model (see `app.assistants.assistant.Assistant`)."""

    @property
    def id(self) -> str:
        """The model name that clients ask for."""
        ...

    @property
    def names(self) -> Mapping[str, str]:
        """Friendly name per language."""
        ...

    @property
    def descriptions(self) -> Mapping[str, str]:
        """What it is for, by language."""
        ...

    @property
    def suggestions(self) -> Mapping[str, Sequence[str]]:
        """First questions that readers are offered, by language."""
        ...

    @property
    def sources(self) -> str:
        """How its sources are sent: events, links or both; empty where that depends on the client."""
        ...

    async def search(self, request: Request) -> Turn:
        """The turn with the ranked passages; no language model is asked."""
        ...

    async def page(self, url: str) -> Page | None:
        """The page of this address with its Markdown, where it has one."""
        ...

    def answer(self, request: Request) -> AsyncIterator[Event]:
        """The answer's events; an error before the first text is raised, a later one is a `Failure`."""
        ...


class Health(Protocol):
    """Whether questions can be answered, and what with (see `app.assistants.assistant.Health`)."""

    @property
    def ok(self) -> bool:
        """True when a question would be answered."""
        ...

    @property
    def store(self) -> str:
        """`ok`, or what is wrong with the store."""
        ...

    @property
    def index(self) -> GenerationInfo | None:
        """The live generation; None when there is none to read."""
        ...

    @property
    def model(self) -> str:
        """Name of the language model."""
        ...

    @property
    def embedder(self) -> str:
        """Name of the embedder that questions are embedded with."""
        ...

    @property
    def details(self) -> Mapping[str, Any]:
        """What else an operator should know."""
        ...


class Assistants(Protocol):
    """All assistants of this service (see `app.assistants.assistant.Assistants`)."""

    @property
    def created(self) -> int:
        """When they were put together, in Unix seconds."""
        ...

    @property
    def model(self) -> Model | None:
        """The language model; None where none is configured."""
        ...

    @property
    def llm_timeout(self) -> float:
        """The longest that a language model of theirs may be silent, in seconds."""
        ...

    def get(self, name: str, /) -> Assistant:
        """The assistant of this name. Raises `RequestError` with the code `model_not_found`."""
        ...

    def listed(self) -> tuple[Assistant, ...]:
        """Those that clients are shown."""
        ...

    async def health(self) -> Health:
        """The state of what answers need."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


@dataclass(frozen=True)
class Service:
    """What every route is given; `patience` and `keep_alive` are in seconds (see `app.api.server.create_app`)."""

    assistants: Assistants
    settings: Settings
    keys: Keys
    admins: Keys
    patience: float = 10.0
    keep_alive: float = 10.0
    limits: Limits = field(default_factory=Limits)

    def check_admin(self, request: HttpRequest, refused: str, *, instead: str = "", param: str | None = None) -> None:
        """Raises `RequestError` without a right admin key, and where none is set; that says what is `refused` then."""
        if not self.admins.required:
            raise RequestError(
                f"{refused} over HTTP here: no admin key is set. Set DOCS_ADMIN_KEYS and start the service again{instead}.",
                param=param,
                code="admin_disabled",
            )
        self.admins.check(request)
