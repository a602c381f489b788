"""GET /v1/interface, /v1/models and /v1/passages/{id}: what clients show before the first question, the assistants as models, and the
passage behind a source of an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.api.answer_models import ModelList, ModelObject, SuggestionObject
from app.api.bodies import JsonResponse, filled, unstored
from app.api.service import Service
from app.assistants.suggestions import Suggester, Suggestions
from app.core.errors import RequestError, quoted
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
    """Data that a page needs to begin. Without a key where one is required, `languages` and all below are missing."""

    title: str
    version: str
    key_required: bool
    sign_in: Annotated[bool, Field(description="Whether people can sign in at /sign-in instead of giving a key.")]
    person: Annotated[str, Field(description="Name of who has signed in; empty for nobody.")]
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
        required, people = self.service.keys.required, self.service.keys.people
        body: InterfaceBody = {
            "title": self._title(),
            "version": VERSION,
            "key_required": required,
            "sign_in": people is not None,
            "person": people.name(request) if people else "",
        }
        if not required or "authorization" in request.headers or (people and people.access(request)):
            body |= await self._details(self.service.allowed(self.service.access(request)))
        return unstored(body)

    def _title(self) -> str:
        names = next((one.table.names for one in self.service.assistants.listed()), {})
        return names.get(self.service.settings.default_language) or next(iter(names.values()), "Docs Assistant")

    async def _details(self, assistants: Assistants) -> InterfaceBody:
        service = self.service
        info = (await service.assistants.ready()).info
        kept = service.conversations is not None
        first: dict[str, Suggestions] = {}
        for one in assistants.listed():
            with suppress(TimeoutError):  # a page that isn't there yet is worse than one without them
                first[one.id] = await self.suggester.of(one, PATIENCE)
        return {  # type: ignore[typeddict-item]  # the other fields are there already
            "languages": service.settings.languages,
            "default_language": service.settings.default_language,
            "assistants": [_described(one, info, first.get(one.id, {})) for one in assistants.listed()],
            "preparing": len(first) < len(assistants.listed()),
            "model": service.assistants.model is not None,
            "index": {"generation": info.id, "pages": info.pages, "built_at": info.built_at} if info else None,
            "keeps": {"days": service.settings.retention_days if kept else 0, "feedback": kept},
        }


def _described(assistant: Assistant, info: GenerationInfo | None, suggestions: Suggestions) -> InterfaceAssistant:
    indexed = {source.collection for source in info.sources} if info else set[str]()
    return {
        "id": assistant.id,
        "name": assistant.table.names,
        "description": assistant.table.descriptions,
        "suggestions": suggestions,
        "personas": [{"id": persona, "name": {}} for persona in sorted(assistant.prompts.personas)],
        "collections": assistant.limits.collections or sorted(indexed),
    }


# features that Open WebUI offers for the model; its built-in tools would add 24 KB to each request
CAPABILITIES = {
    "builtin_tools": False,
    "usage": True,
    "citations": True,
    "file_upload": True,
    "status_updates": True,
    "vision": False,
    "web_search": False,
    "image_generation": False,
    "code_interpreter": False,
}


@dataclass(frozen=True)
class Models:
    """The handlers of both routes."""

    service: Service
    suggester: Suggester

    async def list_models(self, request: Request) -> Response:
        """All listed assistants."""
        allowed = self.service.allowed(self.service.access(request))
        data = [await self._object(assistant) for assistant in allowed.listed()]
        return JsonResponse(ModelList(object="list", data=data))

    async def get_model(self, request: Request, id: str) -> Response:  # noqa: A002  # as the path of the OpenAI API has it
        """One assistant."""
        access = self.service.access(request)
        return JsonResponse(await self._object(self.service.assistant(access, id)))

    async def _object(self, assistant: Assistant) -> ModelObject:
        language = self.service.settings.default_language
        description = _in(language, assistant.table.descriptions)
        suggestions = await self.suggester.of(assistant)
        ordered = sorted(suggestions, key=lambda code: code != language)
        return {
            "id": assistant.id,
            "object": "model",
            "created": self.service.assistants.created,
            "owned_by": "docs-assistant",
            "name": _in(language, assistant.table.names) or assistant.id,
            "description": description,
            "info": {
                "meta": {
                    "description": description,
                    "suggestion_prompts": [_suggestion(text) for code in ordered for text in suggestions[code]],
                    "capabilities": CAPABILITIES,
                }
            },
        }


def _in(language: str, texts: Mapping[str, str]) -> str:
    """The text in this language, else the first text, else an empty string."""
    return texts.get(language) or next(iter(texts.values()), "")


def _suggestion(text: str) -> SuggestionObject:
    """A suggested question for Open WebUI, split into a bold first line and a second line."""
    words = text.split()
    half = (len(words) + 1) // 2
    return {"title": [" ".join(words[:half]), " ".join(words[half:])], "content": text}


class PassageInPage(TypedDict):
    """A chunk of a page between its neighbours. All texts are Markdown as the page has it: show links and images with care."""

    object: Literal["passage"]
    id: str
    title: str
    url: str
    headings: Annotated[Sequence[str], Field(description="Headings of its first section, outermost first.")]
    collection: str
    language: str
    published: Annotated[str, Field(description="ISO 8601, or empty.")]
    modified: Annotated[str, Field(description="ISO 8601, or empty.")]
    before: Annotated[str, Field(description="The chunk before it in the same language; empty at the beginning.")]
    text: str
    after: Annotated[str, Field(description="The chunk after it in the same language; empty at the end.")]


@dataclass(frozen=True)
class Passages:
    """The handler of the route."""

    service: Service

    async def __call__(self, request: Request, id: str, model: str = "") -> Response:  # noqa: A002  # as the path has it
        """The passage, if the assistant may answer from its page."""
        assistant = self.service.assistant(self.service.access(request), model)
        around = await assistant.around(id)
        if around is None:
            raise RequestError(
                f"There is no passage {quoted(id)}. The index may have changed since the answer.",
                param="id",
                code="passage_not_found",
            )
        before, chunk, after = around
        body = filled(
            PassageInPage,
            chunk,
            object="passage",
            url=chunk.link,
            headings=chunk.heading_path,
            before=before,
            after=after,
        )
        return JsonResponse(body)
