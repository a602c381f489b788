"""POST and GET /v1/ingest: starts and lists ingestion runs, for example after a deployment of the documentation."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import IngestRun, IngestRunList
from app.api.bodies import JsonResponse
from app.api.request_models import IngestRequest
from app.api.runs.processes import Run, Runs
from app.api.runs.sites import chosen_sites
from app.api.service import Service

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
        sites = await chosen_sites(self.service, wanted.sites)
        options = [f"--collection={name}" for name in wanted.collections or ()] + ["--force"] * wanted.force
        run = self.runs.start(sites.names, by, sites.environment, [*sites.options, *options])
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

    async def cancel(self, request: Request, id: str) -> Response:  # noqa: A002  # as in the path
        """202 with the run, which ends soon; the index stays as it is."""
        by = self._admin(request)
        run = self.runs.cancel(id, by)
        return JsonResponse(_run_object(run), 202, NO_STORE)

    def _admin(self, request: Request) -> str:
        """Check the admin key; the number of the key and the address of the client."""
        access = self.service.check_admin(request, "Runs can't be started")
        key = f"key {access.key}" if access.key else "this machine"
        return f"{key} from {request.client.host if request.client else 'unknown'}"


def _run_object(run: Run) -> IngestRun:
    return {
        "object": "ingest.run",
        "id": run.id,
        "state": run.state,
        "sites": list(run.sites),
        "by": run.by,
        "queued_at": run.queued_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "exit_code": run.exit_code,
        "progress": run.progress,
        "stage": run.stage,
        "done": run.done,
        "total": run.total,
        "error": run.error,
        "counts": run.report.get("counts") if run.report else None,
    }
