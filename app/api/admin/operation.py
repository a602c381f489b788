"""GET /v1/admin/settings and /v1/admin/errors: the settings in force, and what went wrong lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import ErrorList, ErrorRow, SettingBody, SettingList
from app.api.admin.recent_problems import RecentProblems
from app.api.bodies import JsonResponse
from app.api.runs.route import NO_STORE
from app.api.service import Service
from app.core.settings_sources import Origin
from app.core.shown_settings import described_settings


@dataclass(frozen=True)
class Operation:
    """The handlers of the routes."""

    service: Service
    origins: Mapping[str, Origin]
    recent: RecentProblems = field(default_factory=RecentProblems)

    async def settings(self, request: Request) -> Response:
        """All settings; secrets are only said to be set."""
        self.service.check_admin(request, "Settings can't be looked at")
        data = cast("list[SettingBody]", described_settings(self.service.settings, self.origins))
        body: SettingList = {"object": "list", "data": data}
        return JsonResponse(body, headers=NO_STORE)

    async def errors(self, request: Request) -> Response:
        """The last warnings and errors of this process."""
        self.service.check_admin(request, "Errors can't be looked at")
        data = [cast("ErrorRow", asdict(one)) for one in self.recent.all()]
        body: ErrorList = {"object": "list", "data": data}
        return JsonResponse(body, headers=NO_STORE)
