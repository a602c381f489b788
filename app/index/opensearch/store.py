"""The store on an OpenSearch server: all generations with the same recipe share one index of chunks, behind an alias."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from app.core.errors import IndexDamaged, NoIndex
from app.core.gate import Joined
from app.core.generation import GenerationInfo, Recipe
from app.core.spans import server_of
from app.index.opensearch.catalog import Catalog, Published, State
from app.index.opensearch.connection import Address, Connection
from app.index.opensearch.draft import OpenSearchDraft, Plan
from app.index.opensearch.generation import OpenSearchGeneration
from app.index.opensearch.rows import VERSION
from app.index.opensearch.writing import WriterLock, discard
from app.index.protocols import Kept


class OpenSearchStore:
    """See `app.index.protocols.Store`. Opens its connections with the first call.

    Times are in seconds: `timeout` applies to one call; the lock of a killed writer expires after `lock_seconds`; a
    reader caches the live generation for `notice_seconds` (0: asks with each call, 0.3 ms). `vector_share` is the weight (0..1) of
    the vectors of an embedder, for hybrid queries of other clients.
    """

    def __init__(  # noqa: PLR0913 - settings, all by name
        self,
        address: Address,
        *,
        keep: int = 2,
        ca: str = "",
        timeout: float = 10.0,
        lock_seconds: float = 60.0,
        notice_seconds: float = 0.0,
        vector_share: float = 0.3,
    ) -> None:
        server = server_of(address.hosts[0])
        self.facts = {"db.system.name": "opensearch", "db.collection.name": address.index, **server}
        self._connection = Connection(address.hosts, ca=ca, timeout=timeout, auth=address.auth)
        self._layout = address.layout
        self._catalog = Catalog(self._connection, address.index, address.layout)
        self._keep = keep
        self._lock_seconds = lock_seconds
        self._notice_seconds = notice_seconds
        self._vector_share = vector_share
        self._pinned: OpenSearchGeneration | None = None
        self._pointer: tuple[str, int] | None = None
        self._until = 0.0
        self._looking: Joined[OpenSearchGeneration] = Joined()

    async def live(self) -> OpenSearchGeneration:
        """The live generation. Raises `NoIndex` if nothing was published yet."""
        if self._pinned is not None and time.monotonic() < self._until:
            return self._pinned
        return await self._looking.get(partial(self._look, self._looking))

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> OpenSearchDraft:
        """Begin the next generation. Raises `StoreBusy` while any process writes another draft."""
        await self._catalog.prepare(self._vector_share)
        lock = WriterLock(self._connection, self._catalog.meta, self._lock_seconds)
        try:
            await lock.acquire()
            plan = await (self._rebuilt(recipe) if rebuild else self._prepared(recipe))
            draft = OpenSearchDraft(self._connection, self._catalog, lock, plan, self._forget)
            await draft.load()
        except BaseException:
            await lock.release()
            raise
        return draft

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """The kept generations, newest first, including the live one."""
        live = await self._catalog.live()
        return tuple(published.info for published in live[1].kept) if live else ()

    async def kept(self, name: Kept) -> Mapping[str, Any]:
        """What is kept with the index under this name."""
        return await self._catalog.kept(name)

    async def keep(self, name: Kept, values: Mapping[str, Any]) -> None:
        """Replace it."""
        await self._catalog.keep(name, values)

    async def rollback(self) -> GenerationInfo:
        """Make the previous generation live again. Raises `NoIndex` if none is kept."""
        if await self._catalog.pointer() is None:
            raise NoIndex(f"Nothing is indexed in {self._catalog.name} yet, so there is nothing to go back to.")
        lock = WriterLock(self._connection, self._catalog.meta, self._lock_seconds)
        try:
            await lock.acquire()
            live = await self._catalog.live()
            generations = live[1].kept if live else ()
            if len(generations) < 2:
                raise NoIndex(
                    f"No generation before the live one is kept in {self._catalog.name}. DOCS_GENERATIONS says how "
                    "many are; ingest the sites again instead."
                )
            await lock.confirm()
            await self._catalog.point(generations[1])
        finally:
            await lock.release()
            self._forget()
        return generations[1].info

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._forget()
        await self._connection.close()

    def _forget(self) -> None:
        self._until = 0.0
        self._pointer = None
        self._looking = Joined()  # a running lookup may have read the old pointer

    async def _look(self, looking: Joined[OpenSearchGeneration]) -> OpenSearchGeneration:
        pinned, known = self._pinned, self._pointer
        pointer = await self._catalog.pointer()
        if pointer is None:
            raise NoIndex(
                f"Nothing is indexed in {self._catalog.name} at {self._connection.url} yet. "
                "Run docs-assistant ingest with the address of a site."
            )
        if pinned is None or pointer != known:
            live = await self._catalog.live()
            if live is None:
                raise NoIndex(
                    f"The alias {self._catalog.name} at {self._connection.url} is gone; ingest the sites again."
                )
            pinned = OpenSearchGeneration(self._connection, live[0], self._layout.ef_search)
            pointer = (live[0].chunks, live[0].info.id)
        if self._looking is looking:  # nobody has published meanwhile
            self._pinned, self._pointer, self._until = pinned, pointer, time.monotonic() + self._notice_seconds
        return pinned

    async def _prepared(self, recipe: Recipe) -> Plan:
        """Clean up after an aborted run. The draft makes indices for a rebuild."""
        published = await self._catalog.live()
        live, state = published or (None, replace(await self._catalog.state(), kept=(), fading=()))
        plan = self._plan(live, state, recipe)
        await discard(self._connection, self._catalog, plan.state)
        if plan.base:
            await self._catalog.update(plan.target)
        return plan

    async def _rebuilt(self, recipe: Recipe) -> Plan:
        """A plan of indices beside the existing ones, which may be unreadable and are kept until the publish."""
        try:
            state = await self._catalog.state()
        except IndexDamaged:
            state = State()
        state = replace(state, last_index=max(state.last_index, await self._catalog.highest()))
        every = len(state.kept) + 1  # until the pointer has moved, whichever generation is live must be listed
        return replace(self._plan(None, state, recipe), replaces_all=True, keep=every)

    def _plan(self, live: Published | None, state: State, recipe: Recipe) -> Plan:
        base = live if live is not None and _shares(live, recipe) else None
        state = replace(state, last_index=state.last_index + (base is None))
        chunks = base.chunks if base else f"{self._catalog.name}-{state.last_index}"
        info = GenerationInfo(state.last_id + 1, recipe, built_at="", languages=(), pages=0, chunks=0)
        return Plan(live, base, Published(info, chunks, VERSION), state, self._keep)


def _shares(live: Published, recipe: Recipe) -> bool:
    """True if a draft with this recipe can start from the live generation."""
    return (live.info.recipe, live.layout) == (recipe, VERSION)
