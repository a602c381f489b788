"""The addresses below /v1/admin, with their description in /openapi.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from app.api.admin.answer_models import (
    AdminIndexBody,
    ErrorList,
    GenerationList,
    NeighbourList,
    OneChunkBody,
    PageBody,
    PageList,
    PromptList,
    QuestionObject,
    RollbackBody,
    SettingList,
)
from app.api.admin.chunks import IndexedChunks
from app.api.admin.gaps import Gaps
from app.api.admin.index import IndexStates
from app.api.admin.operation import Operation
from app.api.admin.pages import IndexedPages
from app.api.admin.queries import GapsQuery, IndexQuery, NeighboursQuery, PageQuery, PagesQuery, parameters
from app.api.admin.questions import Questions
from app.api.description import ADMIN, ADMIN_ERRORS, QUESTION_BODY, ROLLBACK_BODY, refusal, returned
from app.api.runs.processes import Runs
from app.api.service import Service
from app.gaps.records import GapReport

NO_INDEX: dict[int | str, dict[str, Any]] = {
    400: refusal("The request is invalid; `param` names the field."),
    404: refusal("There is no such index, page or chunk, or nothing was logged."),
    502: refusal("The index failed."),
    503: refusal("Nothing is indexed yet, or the index can't be reached."),
}
REFUSED: dict[int | str, dict[str, Any]] = {
    409: refusal("No earlier generation is kept or can be used, or a run is writing.")
}
KNOWN: dict[int | str, dict[str, Any]] = {409: refusal("The set has this question already.")}


def add_to(app: FastAPI, service: Service, operation: Operation, runs: Runs) -> None:
    """Add the routes."""
    states, pages, chunks = IndexStates(service, runs), IndexedPages(service), IndexedChunks(service)
    questions = Questions(service)
    for path, handler, summary, model, query in (
        ("index", states.state, "The state of the service and its indexes", AdminIndexBody, IndexQuery),
        ("generations", states.generations, "The kept generations of an index", GenerationList, IndexQuery),
        ("pages", pages.list_pages, "The indexed pages", PageList, PagesQuery),
        ("page", pages.get_page, "One page with its Markdown and chunks", PageBody, PageQuery),
        ("chunks/{id:path}/neighbours", chunks.get_neighbours, "The nearest chunks", NeighbourList, NeighboursQuery),
        ("chunks/{id:path}", chunks.get_chunk, "One chunk as it is searched", OneChunkBody, IndexQuery),
        ("gaps", Gaps(service).report, "What the documentation lacks", GapReport, GapsQuery),
        ("settings", operation.settings, "The settings in force", SettingList, None),
        ("prompts", questions.prompts, "The prompts in force", PromptList, None),
        ("errors", operation.errors, "The last warnings and errors", ErrorList, None),
    ):
        responses = {200: returned(model, "The current state."), **(NO_INDEX if query else {})}
        extra = {"parameters": parameters(query)} if query else {}
        app.add_api_route(f"/v1/admin/{path}", handler, methods=["GET"], **_described(summary, responses, extra))
    responses = {200: returned(RollbackBody, "It is live now."), **NO_INDEX, **REFUSED}
    described = _described("Make the previous generation live again", responses, ROLLBACK_BODY)
    app.add_api_route("/v1/admin/rollback", states.rollback, methods=["POST"], **described)
    responses = {201: returned(QuestionObject, "The file has this line now."), **NO_INDEX, **KNOWN}
    described = _described("Add a question to the question set", responses, QUESTION_BODY)
    app.add_api_route("/v1/admin/questions", questions.add, methods=["POST"], status_code=201, **described)


def _described(summary: str, responses: Mapping[int | str, dict[str, Any]], extra: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": summary,
        "tags": ["Operation"],
        "responses": {**responses, **ADMIN_ERRORS},
        "openapi_extra": {**ADMIN, **extra},
    }
