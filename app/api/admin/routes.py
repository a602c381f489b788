"""The addresses below /v1/admin, with their description in /openapi.json; settings, prompts, errors, and the views of plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from app.api.admin import answer_models as bodies
from app.api.admin import keys, sites
from app.api.admin import question_log as log
from app.api.admin.index import IndexStates
from app.api.admin.problems import RecentProblems
from app.api.admin.views import IndexedPages
from app.api.bodies import RollbackRequest, filled, unstored
from app.api.description import add_operator_routes
from app.api.runs import Runs
from app.api.service import Service
from app.core.prompts import shipped_files
from app.core.settings_sources import Origin
from app.core.shown_settings import described_settings

REFUSED = {409: "No earlier generation is kept or can be used, or a run is writing."}
IN_SETTINGS = {409: "The site is in the settings, or a run is under way."}
KEPT = {409: "The key is needed, or its file can't be changed, or was meanwhile."}


def add_to(app: FastAPI, service: Service, operation: Operation, runs: Runs) -> None:
    """Add the routes."""
    states, pages, asked = IndexStates(service, runs), IndexedPages(service), log.LoggedQuestions(service)
    of_keys, of_sites = keys.AdminKeys(service), sites.Sites(service, runs)
    app.add_api_route(f"{SCRIPTS}/{{path}}.js", operation.script, methods=["GET"], include_in_schema=False)
    add_operator_routes(app, service, (
        ("GET", "index", states.state, "The state of the service and its indexes", bodies.AdminIndexBody, None, {}),
        ("GET", "generations", states.generations, "The kept generations of an index", bodies.GenerationList, None, {}),
        ("POST", "rollback", states.rollback, "Make the previous generation live again", bodies.RollbackBody, RollbackRequest, REFUSED),
        ("GET", "runs", states.list_runs, "The last runs of an index", bodies.RunList, None, {}),
        ("GET", "pages", pages.list_pages, "The indexed pages", bodies.PageList, None, {}),
        ("GET", "page", pages.get_page, "One page with its Markdown and chunks", bodies.PageBody, None, {}),
        ("GET", "chunks/{id:path}/neighbours", pages.get_neighbours, "The nearest chunks", bodies.NeighbourList, None, {}),
        ("GET", "chunks/{id:path}", pages.get_chunk, "One chunk as it is searched", bodies.OneChunkBody, None, {}),
        ("GET", "question-log", asked.list_all, "The questions as they were asked, as JSON, CSV or JSON lines", log.LogList, None, {}),
        ("GET", "question-log/days", asked.days, "The questions by day", log.DayList, None, {}),
        ("GET", "question-log/{id}", asked.one, "One question with its conversation", log.LoggedConversation, None, {}),
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
        add_operator_routes(app, service, (
            ("GET", "sites", of_sites.list_sites, "The sites of the index", sites.SiteList, None, {}),
            ("POST", "sites", of_sites.add, "Add a site", sites.SiteList, sites.SiteRequest, IN_SETTINGS),
            ("POST", "sites/preview", of_sites.preview, "Show what a run would fetch of a site", sites.SitePreview, sites.SiteRequest, {}),
            ("POST", "sites/pause", of_sites.pause, "Pause a site, or go on with it", sites.SiteList, sites.PauseRequest, {}),
            ("POST", "sites/remove", of_sites.remove, "Remove a site with its pages", sites.SiteRemoved, sites.RemoveRequest, IN_SETTINGS),
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

    async def prompts(self) -> Response:
        """The prompts in force, which `overrides` of a chat request can replace."""
        shipped, files = shipped_files(), self.service.assistants.prompts.files
        data: list[bodies.PromptObject] = [
            {"object": "prompt", "file": file, "text": text, "changed": text.strip() != shipped.get(file, "").strip()}
            for file, text in sorted(files.items())
        ]
        return unstored(bodies.PromptList(object="list", data=data))
