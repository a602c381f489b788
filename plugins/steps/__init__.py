"""The steps that an assistants.toml may add, one file each, with what only they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import FastAPI

    from app.api.admin.routes import AdminView
    from app.api.service import Service
    from app.pipeline.registry import StepFactory


@hookimpl
def register_steps() -> Iterable[StepFactory]:
    """The steps of this package, each at its place."""
    from plugins.steps.factories import FACTORIES  # a process that only converts pages needs none

    return FACTORIES


@hookimpl
def register_routes(app: FastAPI, service: Service) -> None:
    """/v1/admin/curated."""
    from plugins.steps.curated_routes import add_to

    add_to(app, service)


@hookimpl
def register_admin_views() -> Iterable[AdminView]:
    """/admin/curated, which the pages of operators have."""
    from app.api.admin.routes import AdminView

    return [AdminView("curated", {"en": "Curated answers", "cs": "Vlastní odpovědi"})]
