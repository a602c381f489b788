"""GET /v1/models and /v1/models/{id}: the assistants, each as a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.responses import Json
from app.api.service import Assistant, Service


@dataclass(frozen=True)
class Models:
    """The handlers of both routes."""

    service: Service

    async def listed(self, request: Request) -> Response:
        """All assistants that are shown."""
        self.service.keys.check(request)
        data = [self._object(assistant) for assistant in self.service.assistants.listed()]
        return Json({"object": "list", "data": data})

    async def one(self, request: Request, id: str) -> Response:  # noqa: A002  # as the path of the OpenAI API has it
        """One assistant."""
        self.service.keys.check(request)
        return Json(self._object(self.service.assistants.get(id)))

    def _object(self, assistant: Assistant) -> dict[str, Any]:
        names = assistant.names
        name = names.get(self.service.settings.default_language) or next(iter(names.values()), assistant.id)
        created = self.service.assistants.created
        return {"id": assistant.id, "object": "model", "created": created, "owned_by": "docs-assistant", "name": name}
