"""The addresses below /v1/admin, with their description in /openapi.json; settings, prompts, errors, and the question set of
`docs-assistant eval`, to which operators add questions.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from app.core.errors import QuestionSetError, RequestError, quoted
from app.core.process import locked
from app.core.prompts import shipped_files
from app.core.settings_sources import Origin
from app.core.shown_settings import described_settings
from app.http.bodies import filled, unstored
from app.routes.admin import answer_models as bodies
from app.routes.admin import keys, quality, sites, verdicts
from app.routes.admin import question_log as log
from app.routes.admin.index import IndexStates
from app.routes.admin.problems import RecentProblems
from app.routes.admin.views import IndexedPages
from app.routes.description import Responses, refusals
from app.routes.request_models import QuestionRequest, RollbackRequest
from app.routes.routers import operator_router, unlisted_router
from app.routes.runs import Runs
from app.routes.service import Service

REFUSED = refusals({409: "No earlier generation is kept or can be used, or a run is writing."})
IN_SETTINGS = refusals({409: "The site is in the settings, or a run is under way."})
FILES: Responses = {200: {"content": {media: {} for media in log.MEDIA.values()}}}
KEPT = refusals({409: "The key is needed, or its file can't be changed, or was meanwhile."})

QUESTION_SETS = Path("question-sets")
"""Directory for questions that are added from a trace."""


def routers(service: Service, operation: Operation, runs: Runs) -> Iterator[APIRouter]:
    """The routes of operators, and the scripts of views."""
    states, pages, asked = IndexStates(service, runs), IndexedPages(service), log.LoggedQuestions(service)
    judged, of_keys, of_sites = verdicts.Verdicts(service), keys.AdminKeys(service), sites.Sites(service, runs)
    yield unlisted_router({f"{SCRIPTS}/{{path}}.js": operation.script}, "GET")
    yield operator_router(service, (
        ("GET", "index", states.state, "The state of the service and its indexes", bodies.AdminIndexBody, None, {}),
        ("GET", "generations", states.generations, "The kept generations of an index", bodies.GenerationList, None, {}),
        ("POST", "rollback", states.rollback, "Make the previous generation live again", bodies.RollbackBody, RollbackRequest, REFUSED),
        ("GET", "runs", states.list_runs, "The last runs of an index", bodies.RunList, None, {}),
        ("GET", "pages", pages.list_pages, "The indexed pages", bodies.PageList, None, {}),
        ("GET", "page", pages.get_page, "One page with its Markdown and chunks", bodies.PageBody, None, {}),
        ("GET", "chunks/{id:path}/neighbours", pages.get_neighbours, "The nearest chunks", bodies.NeighbourList, None, {}),
        ("GET", "chunks/{id:path}", pages.get_chunk, "One chunk as it is searched", bodies.OneChunkBody, None, {}),
        ("GET", "question-log", asked.list_all, "The questions as they were asked, as JSON, CSV or JSON lines", log.LogList, None, FILES),
        ("GET", "question-log/days", asked.days, "The questions by day", log.DayList, None, {}),
        ("GET", "question-log/{id}", asked.one, "One question with its conversation", log.LoggedConversation, None, {}),
        ("GET", "quality", quality.Quality(service), "How good answers are, and were", quality.QualityBody, None, {}),
        ("GET", "verdicts", judged.list_all, "The verdicts of editors", verdicts.VerdictList, None, {}),
        ("POST", "verdicts/{id}", judged.give, "Say that an answer is good or wrong", verdicts.VerdictBody, verdicts.VerdictRequest, {}),
        ("DELETE", "verdicts/{id}", judged.take_back, "Take a verdict back", verdicts.VerdictList, None, {}),
        ("GET", "settings", operation.settings, "The settings in force", bodies.SettingList, None, {}),
        ("GET", "prompts", operation.prompts, "The prompts in force", bodies.PromptList, None, {}),
        ("GET", "errors", operation.errors, "The last warnings and errors", bodies.ErrorList, None, {}),
        ("GET", "views", operation.list_views, "The views of plugins", bodies.ViewList, None, {}),
        ("GET", "keys", of_keys.list_keys, "The keys, without secrets", keys.KeyList, None, KEPT),
        ("POST", "keys", of_keys.make, "Make a key", keys.KeyList, keys.NewKey, KEPT),
        ("POST", "keys/limits", of_keys.limit, "Change the limits of a key", keys.KeyList, keys.KeyLimits, KEPT),
        ("POST", "keys/revoke", of_keys.revoke, "Revoke a key", keys.KeyList, keys.KnownKey, KEPT),
    ))  # fmt: skip
    if runs.can_start:
        yield operator_router(service, (
            ("GET", "sites", of_sites.list_sites, "The sites of the index", sites.SiteList, None, {}),
            ("POST", "sites", of_sites.add, "Add a site", sites.SiteList, sites.SiteRequest, IN_SETTINGS),
            ("POST", "sites/preview", of_sites.preview, "Show what a run would fetch of a site", sites.SitePreview, sites.SiteRequest, {}),
            ("POST", "sites/pause", of_sites.pause, "Pause a site, or go on with it", sites.SiteList, sites.PauseRequest, {}),
            ("POST", "sites/remove", of_sites.remove, "Remove a site with its pages", sites.SiteRemoved, sites.RemoveRequest, IN_SETTINGS),
        ))  # fmt: skip
    known = refusals({409: "The set has this question already."})
    adding = "Add a question to the question set"
    yield operator_router(
        service,
        [("POST", "questions", operation.add_question, adding, bodies.QuestionObject, QuestionRequest, known)],
        201,
    )


@dataclass(frozen=True, slots=True)
class AdminView:
    """A view of /admin that a plugin has. `titles` are by language.

    `script` is a file with an ES module, whose `render(element, service)` draws the view into the element: `service.json(path)`
    resolves to JSON of the service, `service.language` is that of the page, and `service.query` what follows the address.
    Without a script, the pages of operators have the view themselves.
    """

    path: str
    titles: Mapping[str, str]
    script: Path | None = None


SCRIPTS = "/admin-views"


@dataclass(frozen=True)
class Operation:
    """The handlers of the routes."""

    service: Service
    origins: Mapping[str, Origin]
    recent: RecentProblems = field(default_factory=RecentProblems)
    views: Sequence[AdminView] = ()

    async def settings(self) -> Response:
        """All settings; secrets are only said to be set."""
        return unstored({"object": "list", "data": described_settings(self.service.settings, self.origins)})

    async def list_views(self) -> Response:
        """The views of plugins."""
        data = [
            filled(bodies.ViewBody, view, script=f"{SCRIPTS[1:]}/{view.path}.js" if view.script else "")
            for view in self.views
        ]
        return unstored(bodies.ViewList(object="list", data=data))

    async def script(self, path: str) -> Response:
        """The script of a view, which holds no data."""
        view = next((view for view in self.views if view.path == path and view.script), None)
        if view is None or view.script is None:
            raise HTTPException(404)
        return FileResponse(view.script, media_type="text/javascript", headers={"cache-control": "no-cache"})

    async def errors(self) -> Response:
        """The last warnings and errors of this process."""
        return unstored(bodies.ErrorList(object="list", data=self.recent.all()))

    async def add_question(self, request: Request) -> Response:
        """201 with the row that was added, and the file that has it."""
        asked = await self.service.read(request, QuestionRequest)
        row = await self._row(request, asked)
        file = await asyncio.to_thread(QuestionSet(QUESTION_SETS).add, row)
        return unstored(bodies.QuestionObject(object="question", file=file, row=row), 201)

    async def _row(self, request: Request, asked: QuestionRequest) -> dict[str, Any]:
        """The row as `eval.questions.cases` reads it. Raises `RequestError` for a page that isn't indexed."""
        question = asked.question.strip()
        language = self.service.reader_language(request, asked.language)
        if not question:
            raise RequestError("question: it is blank.", param="question")
        row = {"id": hashlib.sha256(question.encode()).hexdigest()[:12], "lang": language, "question": question}
        if not asked.answerable:
            if asked.pages:
                raise RequestError("pages: a question without an answer has no pages.", param="pages")
            return row
        if not asked.pages:
            raise RequestError(
                "pages: name the page that answers the question, or send answerable: false.", param="pages"
            )
        live = await self.service.assistants.get(asked.model).store.live()
        for at, url in enumerate(asked.pages):
            if await live.page(urldefrag(url).url) is None:
                raise RequestError(f"pages[{at}]: {quoted(url)} isn't an indexed page.", param=f"pages[{at}]")
        first, *others = dict.fromkeys(asked.pages)
        optional = {"also": others, "answer": asked.answer, "evidence": asked.evidence}
        return row | {"doc": first} | {name: value for name, value in optional.items() if value}

    async def prompts(self) -> Response:
        """The prompts in force, which `overrides` of a chat request can replace."""
        shipped, files = shipped_files(), self.service.assistants.prompts.files
        data: list[bodies.PromptObject] = [
            {"object": "prompt", "file": file, "text": text, "changed": text.strip() != shipped.get(file, "").strip()}
            for file, text in sorted(files.items())
        ]
        return unstored(bodies.PromptList(object="list", data=data))


ANSWERABLE = "questions.jsonl"
UNANSWERABLE = "unanswerable.jsonl"
"""`docs-assistant eval` has both kinds in files of their own."""


@dataclass(frozen=True)
class QuestionSet:
    """The files with the added questions, in one directory."""

    directory: Path

    def add(self, row: Mapping[str, Any]) -> str:
        """Add the row to the file of its kind, whose name is returned, after all other writers.

        Raises `RequestError` with the code `question_exists` if a file has the question, and `QuestionSetError` if one
        can't be read or written.
        """
        name = ANSWERABLE if "doc" in row else UNANSWERABLE
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with locked(self.directory):
                for file in (ANSWERABLE, UNANSWERABLE):
                    self._refuse_known(row, file)
                path = self.directory / name
                lines = path.read_text("utf-8").split("\n") if path.exists() else []
                new = path.with_suffix(".new")  # a reader sees the old file or the new one
                new.write_text(
                    "\n".join([*filter(None, lines), json.dumps(row, ensure_ascii=False), ""]), encoding="utf-8"
                )
                new.replace(path)
        except (OSError, ValueError) as error:
            raise QuestionSetError(f"The question set in {self.directory} can't be changed: {error}") from error
        return name

    def _refuse_known(self, row: Mapping[str, Any], file: str) -> None:
        path = self.directory / file
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        known = {_key(json.loads(line)) for line in lines if line.strip()}
        if _key(row) in known:
            raise RequestError(f"{file} has this question already.", param="question", code="question_exists")


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("lang", "")), " ".join(str(row.get("question", "")).casefold().split())
