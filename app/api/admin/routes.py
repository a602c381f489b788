"""The addresses below /v1/admin, with their description in /openapi.json; settings, prompts, errors, and the question set of
`docs-assistant eval`, to which operators add questions.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from app.api.admin import answer_models as bodies
from app.api.admin import keys, sites
from app.api.admin import question_log as log
from app.api.admin.index import IndexStates
from app.api.admin.problems import RecentProblems
from app.api.admin.queries import IndexQuery, NeighboursQuery, PageQuery, PagesQuery, parameters
from app.api.admin.views import IndexedPages
from app.api.bodies import QuestionRequest, RollbackRequest, filled, unstored
from app.api.description import ADMIN, ADMIN_ERRORS, Responses, add_routes, body_of, described, refusals
from app.api.runs import Runs
from app.api.service import Service
from app.core.errors import QuestionSetError, RequestError, quoted
from app.core.prompts import shipped_files
from app.core.settings_sources import Origin
from app.core.shown_settings import described_settings

NO_INDEX = ADMIN_ERRORS | refusals(
    {
        400: "The request is invalid; `param` names the field.",
        404: "There is no such index, page or chunk, or nothing was logged.",
        502: "The index failed.",
        503: "Nothing is indexed yet, or the index can't be reached.",
    }
)
REFUSED = NO_INDEX | refusals({409: "No earlier generation is kept or can be used, or a run is writing."})
KNOWN = NO_INDEX | refusals({409: "The set has this question already."})
FILES: Responses = {
    200: {"content": {media.partition(";")[0]: {"schema": {"type": "string"}} for media in log.MEDIA.values()}}
}


def add_to(app: FastAPI, service: Service, operation: Operation, runs: Runs) -> None:
    """Add the routes."""
    states, pages, asked = IndexStates(service, runs), IndexedPages(service), log.LoggedQuestions(service)
    app.add_api_route(f"{SCRIPTS}/{{path}}.js", operation.script, methods=["GET"], include_in_schema=False)
    for path, handler, summary, model, query in (
        ("index", states.state, "The state of the service and its indexes", bodies.AdminIndexBody, IndexQuery),
        ("generations", states.generations, "The kept generations of an index", bodies.GenerationList, IndexQuery),
        ("runs", states.list_runs, "The last runs of an index", bodies.RunList, IndexQuery),
        ("pages", pages.list_pages, "The indexed pages", bodies.PageList, PagesQuery),
        ("page", pages.get_page, "One page with its Markdown and chunks", bodies.PageBody, PageQuery),
        (
            "chunks/{id:path}/neighbours",
            pages.get_neighbours,
            "The nearest chunks",
            bodies.NeighbourList,
            NeighboursQuery,
        ),
        ("chunks/{id:path}", pages.get_chunk, "One chunk as it is searched", bodies.OneChunkBody, IndexQuery),
        ("question-log", asked.list_all, "The questions as they were asked", log.LogList, log.ListQuery),
        ("question-log/days", asked.days, "The questions by day", log.DayList, log.LogQuery),
        ("question-log/{id}", asked.one, "One question with its conversation", log.LoggedConversation, None),
        ("settings", operation.settings, "The settings in force", bodies.SettingList, None),
        ("prompts", operation.prompts, "The prompts in force", bodies.PromptList, None),
        ("errors", operation.errors, "The last warnings and errors", bodies.ErrorList, None),
        ("views", operation.list_views, "The views of plugins", bodies.ViewList, None),
    ):
        extra: dict[str, Any] = {"parameters": parameters(query)} if query else {}
        answers = (NO_INDEX if query else ADMIN_ERRORS) | (FILES if model is log.LogList else {})
        told = described(summary, model, answers, access=ADMIN, **extra)
        app.add_api_route(f"/v1/admin/{path}", handler, methods=["GET"], **told)
    summary, body = "Make the previous generation live again", body_of(RollbackRequest)
    rollback = described(summary, bodies.RollbackBody, REFUSED, access=ADMIN, **body)
    app.add_api_route("/v1/admin/rollback", states.rollback, methods=["POST"], **rollback)
    _add_keys(app, keys.AdminKeys(service))
    if runs.can_start:
        _add_sites(app, sites.Sites(service, runs))
    summary, body = "Add a question to the question set", body_of(QuestionRequest)
    adding = described(summary, bodies.QuestionObject, KNOWN, access=ADMIN, status=201, **body)
    app.add_api_route("/v1/admin/questions", operation.add_question, methods=["POST"], **adding)


def _add_sites(app: FastAPI, handlers: sites.Sites) -> None:
    add_routes(app, "Operation", (
        ("sites", "GET", "/v1/admin/sites", handlers.list_sites, "The sites of the index", sites.SiteList, NO_INDEX, {"access": ADMIN}),
        ("add_site", "POST", "/v1/admin/sites", handlers.add, "Add a site", sites.SiteList,
         NO_INDEX | refusals({409: "The site is in the settings."}), {"access": ADMIN, **body_of(sites.SiteRequest)}),
        ("preview_site", "POST", "/v1/admin/sites/preview", handlers.preview, "Show what a run would fetch of a site",
         sites.SitePreview, NO_INDEX, {"access": ADMIN, **body_of(sites.SiteRequest)}),
        ("pause_site", "POST", "/v1/admin/sites/pause", handlers.pause, "Pause a site, or go on with it", sites.SiteList, NO_INDEX,
         {"access": ADMIN, **body_of(sites.PauseRequest)}),
        ("remove_site", "POST", "/v1/admin/sites/remove", handlers.remove, "Remove a site with its pages", sites.SiteRemoved,
         REFUSED | refusals({409: "The site is in the settings, or a run is under way."}), {"access": ADMIN, **body_of(sites.RemoveRequest)}),
    ))  # fmt: skip


def _add_keys(app: FastAPI, handlers: keys.AdminKeys) -> None:
    refused = ADMIN_ERRORS | refusals({
        400: "A value is wrong.", 404: "There is no such key.", 409: "The key is needed, or its file can't be changed, or was meanwhile.",
    })  # fmt: skip
    add_routes(app, "Operation", (
        ("keys", "GET", "/v1/admin/keys", handlers.list_keys, "The keys, without secrets", keys.KeyList, refused, {"access": ADMIN}),
        *((name, "POST", f"/v1/admin/keys{path}", handler, summary, keys.KeyList, refused, {"access": ADMIN, **body_of(model)})
          for name, path, handler, summary, model in (
              ("make_key", "", handlers.make, "Make a key", keys.NewKey),
              ("limit_key", "/limits", handlers.limit, "Change the limits of a key", keys.KeyLimits),
              ("revoke_key", "/revoke", handlers.revoke, "Revoke a key", keys.KnownKey),
          )),
    ))  # fmt: skip


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

    async def settings(self, request: Request) -> Response:
        """All settings; secrets are only said to be set."""
        self.service.check_admin(request, "Settings can't be looked at")
        return unstored({"object": "list", "data": described_settings(self.service.settings, self.origins)})

    async def list_views(self, request: Request) -> Response:
        """The views of plugins."""
        self.service.check_admin(request, "The pages of operators can't be looked at")
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

    async def errors(self, request: Request) -> Response:
        """The last warnings and errors of this process."""
        self.service.check_admin(request, "Errors can't be looked at")
        return unstored(bodies.ErrorList(object="list", data=self.recent.all()))

    async def add_question(self, request: Request) -> Response:
        """201 with the row that was added, and the file that has it."""
        self.service.check_admin(request, "Questions can't be added")
        asked = await self.service.read(request, QuestionRequest)
        row = await self._row(request, asked)
        file = await asyncio.to_thread(QuestionSet(Path(self.service.settings.tuning.question_sets)).add, row)
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

    async def prompts(self, request: Request) -> Response:
        """The prompts in force, which `overrides` of a chat request can replace."""
        self.service.check_admin(request, "Prompts can't be read")
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
            with (self.directory / "questions.lock").open("w") as lock:  # closing it releases the lock
                fcntl.flock(lock, fcntl.LOCK_EX)
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
