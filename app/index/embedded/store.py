"""The embedded store: LanceDB in a directory, without a server.

A generation is a set of tables at fixed versions. `index.json` names them and is replaced atomically.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.core.errors import IndexDamaged, StoreError
from app.core.generation import GenerationInfo, Recipe
from app.index.embedded import pointer as embedded_pointer
from app.index.embedded.draft import EmbeddedDraft
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.pointer import Pointer
from app.index.embedded.tables import Tables, load_lancedb
from app.index.protocols import Kept

log = logging.getLogger(__name__)


class EmbeddedStore:
    """An index in a directory, for one writer and any number of readers in any processes of one machine.

    `keep` is the number of generations kept. A dropped generation stays readable for `grace` seconds, for requests in
    progress.
    """

    def __init__(self, path: str | Path, *, keep: int = 2, grace: float = 600.0) -> None:
        load_lancedb()
        self._directory = Path(path)
        self.facts = {"db.system.name": "lancedb", "db.collection.name": self._directory.name}
        self._keep = keep
        self._grace = grace
        self._tables = Tables(self._directory)
        self._opening = asyncio.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._live: EmbeddedGeneration | None = None

    async def live(self) -> EmbeddedGeneration:
        """The live generation. Raises `NoIndex` if nothing was published yet."""
        stamp = self._pointer_stamp()
        if self._live is None or stamp != self._stamp:
            async with self._opening:
                if self._live is None or stamp != self._stamp:
                    await self._open_live(stamp)
        assert self._live is not None
        return self._live

    def _pointer_stamp(self) -> tuple[int, int, int] | None:
        """A value that changes with every write of the pointer; None before the first publish."""
        try:
            stat = (self._directory / embedded_pointer.FILE).stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise embedded_pointer.unreachable(self._directory, error) from error
        return stat.st_ino, stat.st_mtime_ns, stat.st_size

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> EmbeddedDraft:
        """Clean up after an aborted run and begin the next generation. Raises `StoreBusy` while another draft is open."""
        lock = embedded_pointer.lock(self._directory)
        try:
            pointer = await self._prepared(rebuild=rebuild)
            base = None
            if pointer.generations and pointer.live.info.recipe == recipe:
                base = await EmbeddedGeneration.open(self._tables, pointer.live)
            draft = EmbeddedDraft(self._tables, recipe, pointer, base, lock=lock, keep=self._keep, grace=self._grace)
            return await draft.load()
        except BaseException:
            lock.close()
            raise

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """The kept generations, newest first; the first is live."""
        return tuple(entry.info for entry in embedded_pointer.read(self._directory).generations)

    async def rollback(self) -> GenerationInfo:
        """Make the previous generation live again. Raises `NoIndex` if none is kept."""
        with embedded_pointer.lock(self._directory):
            pointer = embedded_pointer.read(self._directory).without_live(time.time())
            embedded_pointer.write(self._directory, pointer)
        return pointer.live.info

    async def kept(self, name: Kept) -> Mapping[str, Any]:
        """What is kept with the index under this name."""
        return embedded_pointer.read_kept(self._directory / f"{name}.json")

    async def keep(self, name: Kept, values: Mapping[str, Any]) -> None:
        """Replace it."""
        embedded_pointer.write_kept(self._directory / f"{name}.json", values)

    async def close(self) -> None:
        """Close the tables; safe to call twice."""
        self._live = self._stamp = None
        self._tables.close()

    async def _prepared(self, *, rebuild: bool) -> Pointer:
        """The pointer after cleaning up. If it is damaged, nothing is deleted before a rebuild is published."""
        now = time.time()
        try:
            pointer = embedded_pointer.read(self._directory).without_retired(now - self._grace)
        except IndexDamaged:
            if not rebuild:
                raise
            return Pointer()
        try:
            await self._tables.clean_up(pointer.tables)
        except StoreError as error:
            log.warning("what an earlier run left can't be cleaned up: %s", error)
        return pointer.without_generations(now) if rebuild else pointer

    async def _open_live(self, stamp: tuple[int, int, int] | None) -> None:
        entry = embedded_pointer.read(self._directory).live
        # LanceDB keeps what it read for as long as the connection lives, up to 7 GB, also of versions that nobody reads now
        self._tables = Tables(self._directory)
        self._live = await EmbeddedGeneration.open(self._tables, entry)
        self._stamp = stamp
