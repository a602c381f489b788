"""What is broken and when: a seeded plan, and how each fault is made and mended."""

import asyncio
import contextlib
import random
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.soak.model import BREAKS, Model
from bench.soak.node import Node
from tests.postgres import Cluster

RUN_FAULTS = ("site half", "run killed", "site fifth", "site down", "disk full")
SECONDS = 120.0  # in which there is one fault


class Service(Protocol):
    """What can be restarted."""

    async def restart(self) -> None:
        """Return when the new process is ready."""


@dataclass
class Scene:
    """What can be broken; a part that isn't there is None."""

    model: Model
    service: Service
    folder: Path  # of the embedded index
    database: Path  # the file of SQLite
    node: Node | None = None
    cluster: Cluster | None = None

    def kinds(self) -> list[str]:
        """The faults that last some time."""
        store = ["store stopped", "store killed"] if self.node else ["store away"]
        return ["model down", *BREAKS, *store, "database killed" if self.cluster else "database locked"]


@dataclass(frozen=True)
class Planned:
    """A fault to come; seconds since the start."""

    kind: str
    start: float
    lasts: float


def plan(kinds: Sequence[str], seconds: float, random_: random.Random) -> list[Planned]:
    """Faults at random moments, none at once: one in each two minutes, but each kind at least once; the service is restarted
    early, so that one process is measured for most of the time.
    """
    number = max(len(kinds), round(seconds / SECONDS))
    order = [kind for _ in range(number // len(kinds) + 1) for kind in random_.sample(kinds, len(kinds))][:number]
    slot = seconds * 0.9 / number
    found = [Planned("service restarted", seconds * random_.uniform(0.03, 0.05), 0)]
    for at, kind in enumerate(order):
        lasts = slot * random_.uniform(0.15, 0.4)
        found.append(Planned(kind, seconds * 0.07 + slot * (at + random_.uniform(0, 0.5)), lasts))
    return found


def plan_runs(runs: int, kinds: Sequence[str], random_: random.Random) -> dict[int, str]:
    """The faults of half of the runs, by number from 1; the last run has none."""
    chosen = sorted(random_.sample(range(1, runs), min(runs - 1, max(len(kinds), runs // 2)))) if runs > 1 else []
    order = [kind for _ in range(len(chosen)) for kind in random_.sample(kinds, len(kinds))]
    return dict(zip(chosen, order, strict=False))


@contextlib.asynccontextmanager
async def broken(kind: str, scene: Scene) -> AsyncIterator[None]:
    """The fault lasts as long as the block, and until the part works again."""
    if kind == "service restarted":
        await scene.service.restart()
        yield
        return
    act: Any = {
        "model down": model_down,
        "store away": store_away,
        "store stopped": store_stopped,
        "store killed": store_killed,
        "database locked": database_locked,
        "database killed": database_killed,
    }.get(kind, model_broken)
    async with act(scene, kind):
        yield


@contextlib.asynccontextmanager
async def model_down(scene: Scene, _: str) -> AsyncIterator[None]:
    """The model server refuses connections."""
    await scene.model.stop()
    yield
    await scene.model.start()


@contextlib.asynccontextmanager
async def model_broken(scene: Scene, kind: str) -> AsyncIterator[None]:
    """The model answers in another way."""
    scene.model.fault = kind
    yield
    scene.model.fault = ""


@contextlib.asynccontextmanager
async def store_away(scene: Scene, _: str) -> AsyncIterator[None]:
    """The directory of the index is gone, as a volume that isn't mounted; a file in its place keeps runs from a new one."""
    away = scene.folder.with_suffix(".away")
    scene.folder.rename(away)
    scene.folder.write_text("not mounted")
    yield
    scene.folder.unlink()
    away.rename(scene.folder)


@contextlib.asynccontextmanager
async def store_stopped(scene: Scene, _: str) -> AsyncIterator[None]:
    """The node takes connections and answers nothing."""
    assert scene.node
    scene.node.send(signal.SIGSTOP)
    yield
    scene.node.send(signal.SIGCONT)


@contextlib.asynccontextmanager
async def store_killed(scene: Scene, _: str) -> AsyncIterator[None]:
    """The node is killed; the fault lasts until it is ready again."""
    assert scene.node
    await asyncio.to_thread(scene.node.kill)
    yield
    scene.node.start()
    await scene.node.ready()


@contextlib.asynccontextmanager
async def database_locked(scene: Scene, _: str) -> AsyncIterator[None]:
    """Another process holds the lock for writing."""
    connection = sqlite3.connect(scene.database, timeout=30, isolation_level=None, check_same_thread=False)
    await asyncio.to_thread(connection.execute, "BEGIN EXCLUSIVE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


@contextlib.asynccontextmanager
async def database_killed(scene: Scene, _: str) -> AsyncIterator[None]:
    """The server of the database ends as if the machine lost power, and starts again."""
    assert scene.cluster
    await asyncio.to_thread(scene.cluster.stop)
    yield
    for _ in range(3):  # pg_ctl waits for a minute, which is short on a busy machine
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            await asyncio.to_thread(scene.cluster.start)
            break
