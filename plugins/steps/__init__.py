"""The steps that an assistants.toml may add, one file each, with what only they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from app.pipeline.registry import StepFactory


@hookimpl
def register_steps() -> Iterable[StepFactory]:
    """The steps of this package, each at its place."""
    from plugins.steps.factories import FACTORIES  # a process that only converts pages needs none

    return FACTORIES
