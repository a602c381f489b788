"""Gaps of the documentation: a report made from the question log, for the people who write the documentation.

`making` opens database and index; the others work on what was read. It asks no language model, and reads the log only, so
answers are neither slower nor different.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.routes.admin.routes import AdminView
    from app.routes.service import Service


@hookimpl
def register_commands() -> Mapping[str, tuple[str, str]]:
    """`docs-assistant report`."""
    return {
        "report": (
            "plugins.gaps.command:report",
            "show what the documentation lacks, from the questions that were asked",
        )
    }


@hookimpl
def register_admin_views() -> Iterable[AdminView]:
    """/admin/gaps, which the pages of operators have."""
    from app.routes.admin.routes import AdminView

    return [AdminView("gaps", {"en": "Gaps", "cs": "Mezery"})]


@hookimpl
def register_routes(service: Service) -> Iterable[APIRouter]:
    """GET /v1/admin/gaps, POST /v1/admin/synonyms."""
    from plugins.gaps.routes import router

    return [router(service)]
