"""OpenAI's Responses API, conversations, and the pages for other assistants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI

    from app.routes.service import Service


@hookimpl
def register_routes(app: FastAPI, service: Service) -> Iterable[APIRouter]:
    """/v1/responses, /v1/conversations and /llms.txt."""
    from plugins.more_apis import conversations, llms_txt, responses

    return responses.router(service), *conversations.routers(service), llms_txt.router(service, app.state.branding)
