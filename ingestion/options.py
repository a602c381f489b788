"""The options of a run: what it may do beside reading its sources, and who starts it."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.index.run_history import RunOrigin


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run, which `docs-assistant ingest` has by the same names.

    With `only`, pages of the sources' collections that aren't theirs leave the index, with `replace` those of all collections. Pages of the
    `removed` sites, by their addresses, leave it, too, those of `paused` ones always stay. `force` publishes even if too much is missing. A
    `dry_run` writes nothing, and its report says what a real one would do. `rebuild` reads every page into a new index. Another run is waited
    for `wait` seconds.
    """

    only: bool = False
    replace: bool = False
    force: bool = False
    dry_run: bool = False
    rebuild: bool = False
    removed: tuple[str, ...] = ()
    paused: frozenset[str] = frozenset()
    wait: float = 0.0
    origin: RunOrigin = field(default_factory=RunOrigin)
