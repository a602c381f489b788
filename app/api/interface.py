"""GET /v1/interface: what the page and the widget show before the first question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, NotRequired

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.api.bodies import JsonResponse
from app.api.service import Service
from app.assistants.suggestions import Suggester, Suggestions
from app.core.generation import GenerationInfo

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant, Assistants


VERSION = version("docs-assistant")  # read once: it is in a file
PATIENCE = 0.05  # seconds that a page waits for first questions


class InterfacePersona(TypedDict):
    """A tone of answers."""

    id: str
    name: Annotated[Mapping[str, str], Field(description="By language; empty if nobody has named it.")]


class InterfaceAssistant(TypedDict):
    """An assistant that readers can choose. `name`, `description` and `suggestions` are by language."""

    id: str
    name: Mapping[str, str]
    description: Mapping[str, str]
    suggestions: Annotated[Mapping[str, Sequence[str]], Field(description="First questions.")]
    personas: list[InterfacePersona]
    collections: Annotated[Sequence[str], Field(description="That it answers from.")]


class InterfaceIndex(TypedDict):
    """The live generation of the index."""

    generation: int
    pages: int
    built_at: str


class Keeps(TypedDict):
    """Parts of conversations that the service stores."""

    days: int
    feedback: bool


class InterfaceBody(TypedDict):
    """Data that a page needs to begin. Without a key where one is required: the title, the version and `key_required`."""

    title: str
    version: str
    key_required: bool
    languages: NotRequired[Annotated[Sequence[str], Field(description="In which answers can be.")]]
    default_language: NotRequired[str]
    assistants: NotRequired[list[InterfaceAssistant]]
    model: NotRequired[Annotated[bool, Field(description="Whether a language model is configured.")]]
    preparing: NotRequired[
        Annotated[bool, Field(description="Whether first questions are still being made of the index.")]
    ]
    index: NotRequired[Annotated[InterfaceIndex | None, Field(description="Null if nothing can be searched.")]]
    keeps: NotRequired[Keeps]


@dataclass(frozen=True)
class Interface:
    """The handler of the route."""

    service: Service
    suggester: Suggester

    async def __call__(self, request: Request) -> Response:
        """Returns what a page needs to begin."""
        required = self.service.keys.required
        body: InterfaceBody = {"title": self._title(), "version": VERSION, "key_required": required}
        if not required or "authorization" in request.headers:
            body |= await self._details(self.service.allowed(self.service.access(request)))
        return JsonResponse(body, headers={"cache-control": "no-store"})

    def _title(self) -> str:
        names = next((one.names for one in self.service.assistants.listed()), {})
        return names.get(self.service.settings.default_language) or next(iter(names.values()), "Docs Assistant")

    async def _details(self, assistants: Assistants) -> InterfaceBody:
        service = self.service
        info = (await service.assistants.ready()).info
        kept = service.conversations is not None
        first = {one.id: await self._first_questions(one) for one in assistants.listed()}
        return {  # type: ignore[typeddict-item]  # the other fields are there already
            "languages": service.settings.languages,
            "default_language": service.settings.default_language,
            "assistants": [_described(one, info, first[one.id] or {}) for one in assistants.listed()],
            "preparing": None in first.values(),
            "model": service.assistants.model is not None,
            "index": {"generation": info.id, "pages": info.pages, "built_at": info.built_at} if info else None,
            "keeps": {"days": service.settings.retention_days if kept else 0, "feedback": kept},
        }

    async def _first_questions(self, assistant: Assistant) -> Suggestions | None:
        """None while they are being made: a page that isn't there yet is worse than one without them."""
        try:
            return await self.suggester.of(assistant, PATIENCE)
        except TimeoutError:
            return None


def _described(assistant: Assistant, info: GenerationInfo | None, suggestions: Suggestions) -> InterfaceAssistant:
    indexed = {source.collection for source in info.sources} if info else set[str]()
    return {
        "id": assistant.id,
        "name": assistant.names,
        "description": assistant.descriptions,
        "suggestions": suggestions,
        "personas": [{"id": persona, "name": {}} for persona in sorted(assistant.personas)],
        "collections": assistant.collections or sorted(indexed),
    }
