"""Gaps of the documentation: a report made from the question log, and a briefing each morning, for the people who write the documentation.

`making` opens database and index; the others work on what was read. It asks no language model, and reads the log only, so
answers are neither slower nor different.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.routes.admin.routes import AdminView
    from app.routes.service import Service


@hookimpl
def register_commands() -> Mapping[str, tuple[str, str]]:
    """`docs-assistant report` and `briefing`."""
    return {
        "report": (
            "plugins.gaps.command:report",
            "show what the documentation lacks, from the questions that were asked",
        ),
        "briefing": (
            "plugins.gaps.command:briefing",
            "print or send the briefing of the morning: the last run, the questions of a day, what to write next",
        ),
    }


@hookimpl
def register_work(service: Service) -> Iterable[Coroutine[Any, Any, None]]:
    """The briefing of each morning, if an address is set."""
    if not (service.conversations and service.settings.tuning.briefing.get_secret_value()):
        return []
    from plugins.gaps.delivery import Mornings

    return [Mornings(service).run()]


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
