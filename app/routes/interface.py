"""What clients show before the first question: GET /v1/interface, the assistants as models (/v1/models), the passage behind a source
(/v1/passages/{id}), and the colour and icon of the documentation (/brand.css, /brand/icon).
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.assistants.file import BrandTable, read_assistants
from app.assistants.suggestions import Start, Suggester
from app.core.brand import LARGEST, Brand, image_type, style
from app.core.errors import AssistantError, RequestError, SettingsError, StoreError, quoted
from app.core.generation import GenerationInfo
from app.http.bodies import JsonResponse, filled, unstored
from app.index.run_history import runs_of
from app.routes.answer_models import ModelList, ModelObject, SuggestionObject
from app.routes.description import ERRORS, refusals
from app.routes.routers import router_of
from app.routes.service import Service

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant, Assistants

FRESH = 30.0  # seconds
SHARED = {
    "cache-control": "public, max-age=300",
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
}
# an image of a site can be opened as a page, and may then run nothing
ICON = {**SHARED, "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


class Branding:
    """What [brand] of DOCS_ASSISTANTS says of the documentation (`given`), else what its site says of itself."""

    def __init__(self, service: Service) -> None:
        self._service, self.given = service, read_assistants(service.settings).brand or BrandTable.model_validate({})
        self._icon = icon_of(self.given.icon)
        self._read, self._until = Brand(), 0.0

    async def brand(self) -> Brand:
        """The brand; its name is never empty."""
        if time.monotonic() >= self._until:
            self._until = time.monotonic() + FRESH
            with suppress(StoreError):  # the last one is as good
                self._read = (await runs_of(self._service.assistants.store)).brand
        settings, given, read = self._service.settings, self.given, self._read
        names = next((one.table.names for one in self._service.assistants.listed()), {})
        named = names.get(settings.default_language) or next(iter(names.values()), "")
        name = given.name or (settings.assistants and named) or read.name or named or "Docs Assistant"
        return replace(read, name=name, color=given.color or read.color, welcome=given.welcome)

    async def style(self, _: Request) -> Response:
        """The colour of links and buttons."""
        return Response(style((await self.brand()).color), headers=SHARED, media_type="text/css")

    async def icon(self, _: Request) -> Response:
        """The icon of [brand], else of the site, else our own."""
        image = self._icon or b64decode((await self.brand()).icon) or (files("app") / "static/icon.svg").read_bytes()
        return Response(image, headers=ICON, media_type=image_type(image))


def icon_of(file: str) -> bytes:
    """The image in the file; empty without one. Raises `SettingsError`."""
    try:
        image = Path(file).read_bytes() if file else b""
    except OSError as error:
        raise SettingsError(f"[brand] of DOCS_ASSISTANTS: icon {file} can't be read: {error.strerror}.") from error
    if image and not image_type(image):
        raise SettingsError(
            f"[brand] of DOCS_ASSISTANTS: icon {file} is no icon: use an SVG, PNG, JPEG, GIF, WebP or ICO of at most {LARGEST:,} bytes."
        )
    return image


VERSION = version("docs-assistant")  # read once: it is in a file
PATIENCE = 0.05  # seconds that a page waits for first questions


class InterfacePersona(TypedDict):
    """A tone of answers."""

    id: str
    name: Annotated[Mapping[str, str], Field(description="By language; empty if nobody has named it.")]


class InterfaceAssistant(TypedDict):
    """An assistant that readers can choose. `name`, `description`, `suggestions` and `pages` are by language."""

    id: str
    name: Mapping[str, str]
    description: Mapping[str, str]
    suggestions: Annotated[Mapping[str, Sequence[str]], Field(description="First questions.")]
    pages: Annotated[Mapping[str, Mapping[str, str]], Field(description="Titles of the first pages, by address.")]
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
    share_days: Annotated[int, Field(description="Days for which a link to an answer works; 0 for none.")]


class InterfaceBody(TypedDict):
    """Data that a page needs to begin. Without a key where one is required, `languages` and all below are missing."""

    title: Annotated[str, Field(description="Name of the documentation.")]
    welcome: Annotated[str, Field(description="Line above the first question; empty for the usual one.")]
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
    reading: NotRequired[
        Annotated[Mapping[str, str], Field(description="How far the first run is, by language; empty if none runs.")]
    ]
    page_language: NotRequired[
        Annotated[str, Field(description="Language of the page that was named; empty if it isn't in the index.")]
    ]
    keeps: NotRequired[Keeps]
    contact: NotRequired[
        Annotated[str, Field(description="Address of the web or of mail where people answer; empty for none.")]
    ]


@dataclass(frozen=True)
class Interface:
    """The handler of the route."""

    service: Service
    suggester: Suggester
    branding: Branding

    async def __call__(self, request: Request, page: str = "") -> Response:
        """Returns what a page needs to begin; where `page` is the address that its reader looks at, its questions come first."""
        required, people = self.service.keys.required, self.service.keys.people
        brand = await self.branding.brand()
        body: InterfaceBody = {
            "title": brand.name,
            "welcome": brand.welcome,
            "version": VERSION,
            "key_required": required,
            "sign_in": people is not None,
            "person": people.name(request) if people else "",
        }
        if not required or "authorization" in request.headers or (people and people.access(request)):
            body |= await self._details(self.service.allowed(self.service.access(request)), page)
        return unstored(body)

    async def _details(self, assistants: Assistants, page: str) -> InterfaceBody:
        service, settings = self.service, self.service.settings
        info = (await service.assistants.ready()).info
        kept = service.conversations is not None
        first: dict[str, Start] = {}
        reading: Mapping[str, str] = {}
        language, missing = "", 0
        for one in assistants.listed():
            reading = reading if info or reading else await one.still_reading()
            start = Start(one.table.suggestions)
            try:  # a page that isn't there yet is worse than one without them
                start = await self.suggester.of(one, PATIENCE)
                with suppress(AssistantError):
                    if page and (read := await one.page_of_reader(page)):
                        language = language or read.language
                        start = start.beginning(read.language, await self.suggester.of_page(one, read, 10 * PATIENCE))
            except TimeoutError:
                missing += 1
            first[one.id] = start
        return {  # type: ignore[typeddict-item]  # the other fields are there already
            "languages": settings.languages,
            "default_language": settings.default_language,
            "assistants": [_described(one, info, first[one.id]) for one in assistants.listed()],
            "preparing": missing > 0,
            "model": service.assistants.model is not None,
            "reading": reading,
            "index": {"generation": info.id, "pages": info.pages, "built_at": info.built_at} if info else None,
            "page_language": language,
            "contact": self.branding.given.contact,
            "keeps": {
                "days": settings.retention_days if kept else 0,
                "feedback": kept,
                "share_days": service.share_days,
            },
        }


def _described(assistant: Assistant, info: GenerationInfo | None, start: Start) -> InterfaceAssistant:
    indexed = {source.collection for source in info.sources} if info else set[str]()
    return {
        "id": assistant.id,
        "name": assistant.table.names,
        "description": assistant.table.descriptions,
        "suggestions": start.questions,
        "pages": start.pages,
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
        suggestions = assistant.table.suggestions or (await self.suggester.of(assistant)).questions
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


def routers(service: Service, suggester: Suggester, branding: Branding) -> Sequence[APIRouter]:
    """The routes of the assistants as models, and of what a page shows."""
    models, passages = Models(service, suggester), Passages(service)
    none = refusals({404: "There is no such passage, or the assistant may not use it."})
    return router_of("OpenAI API", (
        ("models", "GET", "/v1/models", models.list_models, "List the assistants", ModelList, ERRORS, {}),
        ("model", "GET", "/v1/models/{id:path}", models.get_model, "Read one assistant", ModelObject,
         ERRORS | refusals({404: "There is no such model."}), {}),
    )), router_of("Interface", (
        ("interface", "GET", "/v1/interface", Interface(service, suggester, branding),
         "Read what a page shows before the first question", InterfaceBody, ERRORS, {}),
        ("passage", "GET", "/v1/passages/{id}", passages, "Read the passage of a source with its neighbours", PassageInPage,
         ERRORS | none, {}),
    ))  # fmt: skip
