"""GET /v1/models and /v1/models/{id}: lists the assistants as models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import ModelList, ModelObject, SuggestionObject
from app.api.bodies import JsonResponse
from app.api.service import Service
from app.assistants.suggestions import Suggester

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

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
        body: ModelList = {"object": "list", "data": data}
        return JsonResponse(body)

    async def get_model(self, request: Request, id: str) -> Response:  # noqa: A002  # as the path of the OpenAI API has it
        """One assistant."""
        access = self.service.access(request)
        return JsonResponse(await self._object(self.service.assistant(access, id)))

    async def _object(self, assistant: Assistant) -> ModelObject:
        language = self.service.settings.default_language
        description = _in(language, assistant.descriptions)
        suggestions = await self.suggester.of(assistant)
        ordered = sorted(suggestions, key=lambda code: code != language)
        return {
            "id": assistant.id,
            "object": "model",
            "created": self.service.assistants.created,
            "owned_by": "docs-assistant",
            "name": _in(language, assistant.names) or assistant.id,
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
