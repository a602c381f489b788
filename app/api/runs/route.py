"""POST and GET /v1/ingest: starts and lists ingestion runs, for example after a deployment of the documentation."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import IngestRun, IngestRunList
from app.api.bodies import JsonResponse
from app.api.request_models import IngestRequest
from app.api.runs.processes import Run, Runs
from app.api.service import Service
from app.core.errors import RequestError, quoted
from app.core.masking import masked

NO_STORE = {"cache-control": "no-store"}


@dataclass(frozen=True)
class Ingest:
    """The handlers of the routes; all require an admin key."""

    service: Service
    runs: Runs

    async def start(self, request: Request) -> Response:
        """202 with the new run."""
        by = self._admin(request)
        wanted = await self.service.read(request, IngestRequest, default=b"{}")
        sites = self._sites(wanted.sites)
        options = [f"--collection={name}" for name in wanted.collections or ()] + ["--force"] * wanted.force
        run = self.runs.start(sites, by, self._environment(sites), options)
        place = f"{request.scope.get('root_path', '')}/v1/ingest/{run.id}"
        return JsonResponse(_run_object(run), 202, {"location": place})

    async def list_runs(self, request: Request) -> Response:
        """The last runs, newest first, without their reports."""
        self._admin(request)
        body: IngestRunList = {"object": "list", "data": [_run_object(run) for run in self.runs.all()]}
        return JsonResponse(body, headers=NO_STORE)

    async def get_run(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """One run with its report."""
        self._admin(request)
        run = self.runs.get(id)
        body: IngestRun = {**_run_object(run), "report": run.report}
        return JsonResponse(body, headers=NO_STORE)

    def _admin(self, request: Request) -> str:
        """Check the admin key; the number of the key and the address of the client."""
        self.service.check_admin(request, "Runs can't be started")
        return (
            f"key {self.service.admins.key_number(request)} from {request.client.host if request.client else 'unknown'}"
        )

    def _sites(self, wanted: list[str] | None) -> tuple[str, ...]:
        """The sites to index. Only configured sites are ever fetched, even with an admin key."""
        configured = (*self.service.settings.sites, *self._files())
        if not configured:
            raise RequestError("No site is configured to be indexed: set DOCS_SITES or DOCS_SOURCES.", code="no_sites")
        for i, site in enumerate(wanted or ()):
            if site not in configured:
                known = ", ".join(map(masked, configured))
                raise RequestError(
                    f"sites[{i}]: {quoted(site)} is not configured. Write it as DOCS_SITES and DOCS_SOURCES have it: {known}.",
                    param=f"sites[{i}]",
                )
        return tuple(site for site in configured if wanted is None or site in wanted)

    def _files(self) -> tuple[str, ...]:
        """The file of sources, if one is configured."""
        return (self.service.settings.sources,) if self.service.settings.sources else ()

    def _environment(self, sites: tuple[str, ...]) -> dict[str, str]:
        """The environment variables that pass these sites to the command."""
        files = self._files()
        addresses = " ".join(site for site in sites if site not in files)
        return {"DOCS_SITES": addresses, "DOCS_SOURCES": "".join(name for name in files if name in sites)}


def _run_object(run: Run) -> IngestRun:
    return {
        "object": "ingest.run",
        "id": run.id,
        "state": run.state,
        "sites": [masked(site) for site in run.sites],
        "by": run.by,
        "queued_at": run.queued_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "exit_code": run.exit_code,
        "progress": run.progress,
        "error": run.error,
        "counts": run.report.get("counts") if run.report else None,
    }
