"""The steps that an assistants.toml may add, one file each, with what only they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from fastapi import APIRouter

    from app.pipeline.registry import StepFactory
    from app.routes.admin.routes import AdminView
    from app.routes.service import Service


@hookimpl
def register_steps() -> Iterable[StepFactory]:
    """The steps of this package, each at its place."""
    # a process that only converts pages needs none
    from app.pipeline.registry import StepFactory, factory_of
    from plugins.steps.choices import Clarify, Condense, Helpful, Rerank, Verify
    from plugins.steps.curated import Curated
    from plugins.steps.period import AskedPeriod, open_rules
    from plugins.steps.searches import (
        Analyze,
        Associate,
        Clustered,
        HypotheticalAnswer,
        MultiQuery,
        SecondSearch,
    )

    return (
        factory_of(Clustered, "refine"),
        StepFactory(
            AskedPeriod,
            lambda t: AskedPeriod(t.prompts, t.settings, open_rules(t.prompts), t.model, quoted=t.quoted),
            "refine",
        ),
        *(factory_of(step, "probe") for step in (Analyze, MultiQuery, HypotheticalAnswer, Associate)),
        *(factory_of(step, "relevance") for step in (Rerank, Helpful)),
        factory_of(SecondSearch, "overview"),
        *(factory_of(step, "synthesize") for step in (Curated, Clarify, Condense)),
        factory_of(Verify, "cite"),
    )


@hookimpl
def register_routes(service: Service) -> Iterable[APIRouter]:
    """/v1/admin/curated."""
    from plugins.steps.curated_routes import router

    return [router(service)]


@hookimpl
def register_admin_views() -> Iterable[AdminView]:
    """/admin/curated, which the pages of operators have."""
    from app.routes.admin.routes import AdminView

    return [AdminView("curated", {"en": "Curated answers", "cs": "Vlastní odpovědi"})]
