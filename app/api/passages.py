"""GET /v1/passages/{id}: the passage behind a source of an answer, with what stands around it on its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.api.bodies import JsonResponse
from app.api.service import Service
from app.core.errors import RequestError, quoted


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
        body: PassageInPage = {
            "object": "passage",
            "id": chunk.id,
            "title": chunk.title,
            "url": chunk.link,
            "headings": chunk.heading_path,
            "collection": chunk.collection,
            "language": chunk.language,
            "published": chunk.published,
            "modified": chunk.modified,
            "before": before,
            "text": chunk.text,
            "after": after,
        }
        return JsonResponse(body)
