"""The two stores as an operator has them: what can break under each, and what is counted and found there."""

from __future__ import annotations

import asyncio
import functools
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx
import orjson

from app.core.settings import Settings
from app.index import open_store
from app.index.protocols import Store
from tests.opensearch import opensearch_address


class Place(Protocol):
    """Where an index is kept; `address` is for DOCS_STORE."""

    address: str

    def writes(self) -> Mapping[str, Any]:
        """What differs as soon as anything of the index was written."""
        ...

    def break_down(self) -> None:
        """The store can't be reached any more."""
        ...

    def mend(self) -> None:
        """It is as it was before it broke or was full."""
        ...

    def fill(self) -> None:
        """Nothing more can be written."""
        ...

    def left_over(self) -> list[str]:
        """What no generation needs and a run should have cleared."""
        ...


class Directory:
    """The embedded store in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "index"
        self.address = str(self.folder)
        self._away = folder / "away"

    def writes(self) -> Mapping[str, Any]:
        """Size and time of each file, without the results of runs, which every run writes."""
        found = {path: path.stat() for path in self.folder.rglob("*") if path.is_file() and path.name != "runs.json"}
        return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}

    def break_down(self) -> None:
        """As an unmounted volume: the mount point is empty."""
        self.folder.rename(self._away)
        self.folder.mkdir()

    def mend(self) -> None:
        """What was written at the empty mount point is covered by the volume."""
        if self._away.exists():
            self.folder.rename(self.folder.with_name(f"covered-{uuid.uuid4().hex}"))
            self._away.rename(self.folder)

    def fill(self) -> None:
        """A process can be given such a limit only from outside."""
        raise NotImplementedError

    def left_over(self) -> list[str]:
        """Tables that the pointer doesn't name."""
        pointer = orjson.loads((self.folder / "index.json").read_bytes())
        holders = [[entry[kind] for kind in ("chunks", "texts", "pages", "words")] for entry in pointer["generations"]]
        holders += [retired["tables"] for retired in pointer["retired"]]
        named = {table["name"] for tables in holders for table in tables}
        return [folder.name for folder in self.folder.glob("*.lance") if folder.stem not in named]


class Server:
    """An index of its own on a real OpenSearch, reached through a line that can be cut."""

    def __init__(self, url: str, line: Line) -> None:
        self.name = f"faults-{uuid.uuid4().hex[:12]}"
        self.address = f"opensearch://127.0.0.1:{line.port}/{self.name}"
        self._line = line
        self._http = httpx.Client(base_url=url, timeout=60)

    def writes(self) -> Mapping[str, Any]:
        """Operations so far in each index but the catalog, which has the results of runs and the writer's lock."""
        params = {"level": "shards", "filter_path": "indices.*.shards.*.seq_no.max_seq_no"}
        found = self._http.get(f"/{self.name}-*/_stats", params=params).json().get("indices", {})
        counted = {
            index: value["shards"]["0"][0]["seq_no"]["max_seq_no"]
            for index, value in found.items()
            if not index.endswith("-meta")
        }
        return counted | {"alias": self._http.get(f"/_alias/{self.name}").text}

    def break_down(self) -> None:
        """Open connections die, new ones are refused."""
        self._line.cut()

    def mend(self) -> None:
        """The line is up again, and indices may be written to."""
        self._line.restore()
        self._block(None)

    def fill(self) -> None:
        """What OpenSearch does itself when its disk reaches the flood stage."""
        self._block(True)

    def left_over(self) -> list[str]:
        """Rows of generations that aren't listed, and indices without any."""
        state = self._http.get(f"/{self.name}-meta/_doc/state").json()["_source"]
        listed = [*state["kept"], *state["fading"]]
        used = {name for p in listed for name in (p["chunks"], f"{p['chunks']}-pages")}
        there = set(self._http.get(f"/_cat/indices/{self.name}-*?h=index").text.split()) - {f"{self.name}-meta"}
        left = sorted(there - used)
        for index in sorted(used & there):
            newest = max(p["info"]["id"] for p in listed if index.removesuffix("-pages") == p["chunks"])
            self._http.post(f"/{index}/_refresh").raise_for_status()
            dead = {"bool": {"should": [{"range": {f"metadata.{f}": {"gt": newest, "lt": 2**31 - 1}}} for f in FIELDS]}}
            count = self._http.post(f"/{index}/_count", json={"query": dead}).json()["count"]
            left += [f"{count} rows of {index}"] * bool(count)
        return left

    def delete(self) -> None:
        """Leave nothing on the server."""
        self.mend()
        self._http.delete(f"/{self.name}-*").raise_for_status()
        self._http.delete(f"/_search/pipeline/{self.name}*")
        self._http.close()

    def _block(self, value: bool | None) -> None:
        body = {"index.blocks.read_only_allow_delete": value}
        self._http.put(f"/{self.name}-*/_settings", json=body).raise_for_status()


FIELDS = ("gen_from", "gen_to")


class Line:
    """A TCP connection to a server that a test can cut; in a thread of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.restore()

    def restore(self) -> None:
        """Take connections (again, at the same port)."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def cut(self) -> None:
        """Break what is open and refuse what comes."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)

    def close(self) -> None:
        """The end."""
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        back: asyncio.StreamWriter | None = None
        try:
            there, back = await asyncio.open_connection(*self._to)
            await asyncio.gather(_pass(reader, back), _pass(there, writer))
        except asyncio.CancelledError:
            pass  # cut; asyncio's server would log it
        finally:
            self._open.discard(task)
            for end in (writer, back):
                if end is not None:
                    end.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def directory(folder: Path) -> Iterator[Place]:
    """An empty directory."""
    yield Directory(folder)


@contextmanager
def server(folder: Path) -> Iterator[Place]:
    """An index on the OpenSearch of the tests; deleted in the end."""
    url = opensearch_address()
    parts = httpx.URL(url)
    line = Line(parts.host, parts.port or 9200)
    place = Server(url, line)
    try:
        yield place
    finally:
        place.delete()
        line.close()


PLACES = {"embedded": directory, "opensearch": server}


def opened(place: Place) -> Store:
    """The store, as another process opens it."""
    return open_store(_settings(place.address))


@functools.cache
def _settings(address: str) -> Settings:
    return Settings.load(None, store=address, store_timeout=30)
