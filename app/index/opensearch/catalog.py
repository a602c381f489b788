"""The catalog of generations: an alias points to the live one, a document lists them all."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from app.core.errors import IndexDamaged, StoreError, StoreUnavailable
from app.core.generation import GenerationInfo, kept_after, stored_entry
from app.core.log_message import LogMessage
from app.index.opensearch.connection import SLOW, Connection, Layout
from app.index.opensearch.rows import alive, chunk_index, meta_index, page_index, search_pipeline
from app.index.run_history import unreadable

log = logging.getLogger("app.index")

NO_PIPELINE = (
    "no search pipeline for hybrid queries of other clients: it needs the plugin neural-search and the right to manage "
    "search pipelines"
)
HEALTH_SECONDS = 60
OLDEST = (3, 0)
"""The oldest supported version: filters inside k-NN for the engine lucene, and (1 + cosine) / 2 in scripts."""


@dataclass(frozen=True, slots=True)
class Published:
    """A generation and its indices; `layout` is the version of their mapping."""

    info: GenerationInfo
    chunks: str
    layout: int

    @property
    def pages(self) -> str:
        """The name of the index of its page records."""
        return f"{self.chunks}-pages"


@dataclass(frozen=True, slots=True)
class State:
    """The document of the catalog. `kept` are the generations for a rollback, newest first; `fading` are dropped ones whose
    rows are kept for current readers. `last_id` and `last_index` are the highest numbers ever used.
    """

    last_id: int = 0
    last_index: int = 0
    kept: tuple[Published, ...] = ()
    fading: tuple[Published, ...] = ()

    def find(self, generation: int) -> Published | None:
        """The generation with this id."""
        return next((p for p in (*self.kept, *self.fading) if p.info.id == generation), None)

    def upto(self, generation: int) -> State:
        """A copy without later generations: aborted drafts, and generations that were rolled back.

        This one is kept, also if a draft that was killed before it moved the pointer has listed it as fading.
        """
        generations = tuple(p for p in self.kept if p.info.id <= generation)
        fading = {p.info.id: p for p in self.fading if p.info.id <= generation}
        if live := fading.pop(generation, None):
            generations = (live, *generations)
        return replace(self, kept=generations, fading=tuple(fading.values()))

    def with_generation(self, newest: Published, keep: int) -> State:
        """A copy with a newer generation; the oldest kept one may become `fading`."""
        listed = (newest, *self.kept, *self.fading)
        keep = kept_after(self.kept[0].info.recipe if self.kept else None, newest.info.recipe, keep)
        return replace(self, last_id=newest.info.id, kept=listed[:keep], fading=listed[keep : keep + 1])


class Catalog:
    """Reads and writes the catalog and the alias of this name."""

    def __init__(self, connection: Connection, name: str, layout: Layout) -> None:
        self.name = name
        self._layout = layout
        self.meta = f"{name}-meta"
        self.pipeline = f"{name}-hybrid"
        self._connection = connection

    async def pointer(self) -> tuple[str, int] | None:
        """The live index and the number of its generation; None if nothing was published."""
        # a user with rights for these indices only may not look among all
        aliases = await self._connection.call("GET", f"/{self.name}-*/_alias/{self.name}", allow=(404,))
        if not aliases:
            return None
        try:
            ((index, alias),) = aliases.items()
            generation = alias["aliases"][self.name]["filter"]["bool"]["filter"][0]["range"]["metadata.gen_from"]["lte"]
            return index, int(generation)
        except (LookupError, TypeError, ValueError) as error:
            raise StoreError(
                f"The alias {self.name} at {self._connection.url} is not one of this service ({error!r}). "
                "Choose another index name in DOCS_STORE."
            ) from error

    async def state(self) -> State:
        """The document of the catalog; an empty state if there is none."""
        values = await self.kept("state")
        try:
            return _to_state(values) if values else State()
        except (LookupError, TypeError) as error:
            raise unreadable(f"{self.meta} at {self._connection.url}", error) from error

    async def live(self) -> tuple[Published, State] | None:
        """The live generation and the state up to it; None if nothing was published."""
        pointer = await self.pointer()
        for _ in range(3):
            if pointer is None:
                return None
            state = await self.state()
            published = state.find(pointer[1])
            if published is not None and published.chunks == pointer[0]:
                return published, state.upto(pointer[1])
            pointer = await self.pointer()  # a writer may have published between the two reads
        raise IndexDamaged(
            f"The alias {self.name} at {self._connection.url} names a generation that {self.meta} doesn't list: "
            f"{pointer}. Was it moved by hand, or {self.meta} deleted?"
        )

    async def write(self, state: State) -> None:
        """Write the document. Requires the writer's lock."""
        values = asdict(state)
        values |= {name: [stored_entry(entry) for entry in values[name]] for name in ("kept", "fading")}
        await self._connection.call("PUT", f"/{self.meta}/_doc/state", values)

    async def point(self, to: Published) -> None:
        """Make this generation live, in one atomic step."""
        pointer = await self.pointer()
        # the filter tells which generation it is
        add = {"index": to.chunks, "alias": self.name, "filter": {"bool": {"filter": alive(to.info.id)}}}
        actions: list[dict[str, Any]] = [{"add": add}]
        if pointer is not None and pointer[0] != to.chunks:
            actions.insert(0, {"remove": {"index": pointer[0], "alias": self.name}})
        # a repeated move finds that the alias has left the old index
        allow = ("aliases_not_found_exception",)
        await self._connection.call("POST", "/_aliases", {"actions": actions}, allow=allow, timeout=60)

    async def prepare(self, vector_weight: float) -> None:
        """Check the server, and create the index of the catalog if it is missing, so that no write creates it implicitly.

        Also create the search pipeline for hybrid queries of other clients; `vector_weight` (0..1) is that of vectors.
        """
        await self._check_place()
        await asyncio.gather(self._prepare_meta(), self._prepare_pipeline(vector_weight))

    async def _prepare_pipeline(self, vector_weight: float) -> None:
        path, body = f"/_search/pipeline/{self.pipeline}", search_pipeline(vector_weight)
        try:
            pipelines = await self._connection.call("GET", path, allow=(404,))
            if not pipelines or pipelines[self.pipeline] != body:
                await self._connection.call("PUT", path, body)
        except StoreUnavailable:
            raise
        except StoreError as error:  # the service itself doesn't need it
            log.warning(LogMessage(NO_PIPELINE, name=self.pipeline, error=error))

    async def make(self, target: Published) -> None:
        """Create the indices of this generation. Raises `StoreUnavailable` if no node takes them."""
        recipe = target.info.recipe
        bodies = {
            target.chunks: chunk_index(recipe.dimension, self._layout, questions=bool(recipe.questions)),
            target.pages: page_index(recipe.dimension if recipe.summaries else 0, self._layout),
        }
        for name, body in bodies.items():
            make = partial(_made, self._connection.url.partition(",")[0], name, recipe.dimension, body)
            await self._connection.run(f"PUT /{name}", make, allow="resource_already_exists_exception", timeout=60)
            path, params = f"/_cluster/health/{name}", {"wait_for_active_shards": "1", "timeout": "30s"}
            health = await self._connection.call("GET", path, params=params, allow=(408,), timeout=60)
            if health["timed_out"]:
                raise StoreUnavailable(
                    f"OpenSearch at {self._connection.url} made the index {name}, but no node took it. "
                    "See its cluster health: disks may be full."
                )

    async def update(self, target: Published) -> None:
        """Give indices of earlier runs the replicas that the address sets, if it does."""
        if self._layout.replicas is not None:
            indices = f"{target.chunks},{target.pages},{self.meta}"
            await self._connection.call("PUT", f"/{indices}/_settings", {"index": self._layout.copies}, timeout=60)

    async def check_health(self, target: Published) -> None:
        """Wait until all shards and replicas of this generation are active. Raises `StoreUnavailable` after `HEALTH_SECONDS`."""
        params = {"wait_for_status": "green", "timeout": f"{HEALTH_SECONDS}s"}
        path = f"/_cluster/health/{target.chunks},{target.pages}"
        health = await self._connection.call("GET", path, params=params, allow=(408,), timeout=HEALTH_SECONDS + 10)
        if health["timed_out"] or health["status"] != "green":
            raise StoreUnavailable(
                f"Nothing was published: {target.chunks} at {self._connection.url} is {health['status']}, not green, after "
                f"{HEALTH_SECONDS} s ({health['active_shards']} shards and replicas active, {health['unassigned_shards']} "
                f"unassigned, {health['number_of_data_nodes']} data nodes). Start the missing nodes or lower replicas in "
                "DOCS_STORE, then start the run again; GET /_cluster/allocation/explain tells more."
            )

    async def kept(self, name: str) -> Mapping[str, Any]:
        """The document of this name beside the catalog; empty if there is none."""
        answer = await self._connection.call("GET", f"/{self.meta}/_doc/{name}", allow=(404,))
        values: Mapping[str, Any] = answer["_source"] if answer else {}
        return values

    async def keep(self, name: str, values: Mapping[str, Any]) -> None:
        """Replace it."""
        await self._prepare_meta()
        await self._connection.call("PUT", f"/{self.meta}/_doc/{name}", values)

    async def _check_place(self) -> None:
        """Raises `StoreError` if the server is too old or something else, or has an index of something else under this name."""
        server = await self._connection.call("GET", "/")
        told = server.get("version", {})
        version, kind = str(told.get("number", "unknown")), told.get("distribution", "no OpenSearch")
        if kind != "opensearch" or tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
            raise StoreError(
                f"The server at {self._connection.url} is {kind} {version}; OpenSearch {OLDEST[0]}.{OLDEST[1]} or newer is needed."
            )
        if await self.pointer() is None and await self._connection.call("GET", f"/{self.name}", allow=(404,)):
            raise StoreError(
                f"{self.name} at {self._connection.url} is an index of something else: ours is an alias. "
                "Choose another index name in DOCS_STORE."
            )

    async def _prepare_meta(self) -> None:
        if not await self._connection.call("GET", f"/{self.meta}", allow=(404,)):
            await self._check_place()  # nothing is written to a server that a run refused
            await self._connection.call("PUT", f"/{self.meta}", meta_index(self._layout), allow=(400,), timeout=60)

    async def delete_others(self, state: State) -> None:
        """Delete the indices of this store that no generation in the state uses."""
        used = {name for p in (*state.kept, *state.fading) for name in (p.chunks, p.pages)}
        await self.delete(*(index for index in await self._numbers_of_indices() if index not in used))

    async def delete(self, *indices: str) -> None:
        """Delete these indices."""
        for index in indices:
            await self._connection.call("DELETE", f"/{index}", allow=(404,), timeout=SLOW)

    async def highest(self) -> int:
        """The highest number of an index of this store; 0 if there is none."""
        return max((await self._numbers_of_indices()).values(), default=0)

    async def _numbers_of_indices(self) -> dict[str, int]:
        """The numbers of the indices of this store, by name."""
        ours = re.compile(re.escape(self.name) + r"-(\d+)(-pages)?")
        aliases: Mapping[str, Any] = await self._connection.call("GET", f"/{self.name}-*/_alias")
        return {index: int(match[1]) for index in aliases if (match := ours.fullmatch(index))}


def _to_state(source: Mapping[str, Any]) -> State:
    kept, fading = (
        tuple(Published(GenerationInfo.stored(entry), entry["chunks"], entry["layout"]) for entry in source[name])
        for name in ("kept", "fading")
    )
    return State(source["last_id"], source["last_index"], kept, fading)


async def _made(host: str, name: str, dimension: int, body: Mapping[str, Any], client: Any) -> None:
    """Make the index by LlamaIndex's client, with our mapping, unless it is there."""
    from llama_index.vector_stores.opensearch import OpensearchVectorClient  # half a second, for a new index alone

    made = OpensearchVectorClient(host, name, dimension, idx_conf=dict(body), os_async_client=client)
    await made.aindex_results([])
