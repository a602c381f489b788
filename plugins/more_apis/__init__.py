"""OpenAI's Responses API, conversations, and the pages for other assistants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import FastAPI

    from app.routes.service import Service


@hookimpl
def register_routes(app: FastAPI, service: Service) -> None:
    """/v1/responses, /v1/conversations and /llms.txt."""
    from plugins.more_apis import conversations, llms_txt, responses

    responses.add_to(app, service)
    conversations.add_to(app, service)
    llms_txt.add_to(app, service, app.state.branding)
