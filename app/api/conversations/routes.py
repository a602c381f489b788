"""Adds the routes of conversations, kept responses and feedback to the application."""

from __future__ import annotations

from fastapi import FastAPI

from app.api.conversations import description
from app.api.conversations.feedback import FeedbackRoutes
from app.api.conversations.route import Conversations
from app.api.responses.stored import StoredResponses
from app.api.service import Service
from app.watch.metrics import Metrics


def add_to(app: FastAPI, service: Service, metrics: Metrics) -> None:
    """Add the routes; without a store, each says that nothing is kept."""
    if service.conversations:
        service.conversations.writer.on_lost = metrics.not_kept
    docs, conversations = description, Conversations(service)
    responses, feedback = StoredResponses(service), FeedbackRoutes(service, metrics)
    one = "/v1/conversations/{id}"
    for method, path, handler, described in (
        ("POST", "/v1/conversations", conversations.create, docs.CREATE),
        ("GET", "/v1/conversations", conversations.list_all, docs.LIST),
        ("GET", one, conversations.get, docs.GET),
        ("POST", one, conversations.change, docs.CHANGE),
        ("DELETE", one, conversations.delete, docs.DELETE),
        ("POST", f"{one}/reset", conversations.reset, docs.RESET),
        ("GET", f"{one}/items", conversations.items, docs.ITEMS),
        ("GET", "/v1/responses/{id}", responses.get, docs.RESPONSE),
        ("DELETE", "/v1/responses/{id}", responses.delete, docs.RESPONSE_DELETE),
        ("POST", "/v1/answers/{id}/feedback", feedback.give, docs.FEEDBACK),
        ("DELETE", "/v1/answers/{id}/feedback", feedback.take_back, docs.FEEDBACK_DELETE),
        ("GET", "/v1/admin/feedback", feedback.list_all, docs.FEEDBACK_LIST),
    ):
        app.add_api_route(path, handler, methods=[method], **described)
