"""What several processes prepare for one run, in an index of its own, until the run is published.

Everything is written and read by id, which needs no refresh: what one process wrote, the others see at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from app.index.opensearch.address import Layout
from app.index.opensearch.connection import SLOW, Connection, to_lines
from app.index.opensearch.mapping import meta_index

FORGOTTEN = 3 * 24 * 3600
"""Seconds after which the parts of a run that was never published are deleted."""

REMEMBERED = 50
"""Names of published drafts that are kept, so that a process that comes too late doesn't begin anew."""


class OpenSearchParts:
    """See `app.index.protocols.Parts`. `name` is that of the store's indices, `draft` that of the run."""

    def __init__(self, connection: Connection, name: str, draft: str, layout: Layout) -> None:
        self.draft = draft
        self._name = name
        self._prefix = f"{name}-parts-"
        self._index = f"{self._prefix}{draft}"
        self._published = f"/{name}-meta/_doc/published-drafts"
        self._connection = connection
        self._layout = layout

    async def open(self) -> None:
        """Create the index, unless another process has."""
        exists = ("resource_already_exists_exception", 400)
        body = meta_index(self._layout)
        body["mappings"] |= {"_meta": {"parts_of": self._name}}
        await self._connection.call("PUT", f"/{self._index}", body, allow=exists, timeout=60)

    async def find(self, key: str) -> Mapping[str, Any] | None:
        """What is kept under this key; None if there is nothing, or no such draft."""
        answer = await self._connection.call("GET", f"/{self._index}/_doc/{key}", allow=(404,))
        return answer["_source"] if answer else None

    async def find_all(self, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """What is kept under these keys, without those that aren't there."""
        if not keys:
            return {}
        answer = await self._connection.call("POST", f"/{self._index}/_mget", {"ids": list(keys)}, allow=(404,))
        return {one["_id"]: one["_source"] for one in answer["docs"] if one.get("found")} if answer else {}

    async def keep(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep the values under this key, in place of others."""
        await self._connection.call("PUT", f"/{self._index}/_doc/{key}", values)

    async def keep_all(self, values: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep each of these values under its key."""
        lines = (to_lines({"index": {"_index": self._index, "_id": key}}, one) for key, one in values.items())
        await self._connection.bulk(b"".join(lines))

    async def first(self, key: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is kept under this key: the values, if no other process was first."""
        path = f"/{self._index}/_doc/{key}"
        await self._connection.call("PUT", path, values, params={"op_type": "create"}, allow=(409,))
        return await self.find(key) or values

    async def is_published(self) -> bool:
        """True if a run has published the draft."""
        return self.draft in await self._names()

    async def publish(self) -> None:
        """Remember that the draft is published, and delete its parts and those that were forgotten."""
        names = [*(name for name in await self._names() if name != self.draft), self.draft]
        await self._connection.call("PUT", self._published, {"names": names[-REMEMBERED:]})
        found = await self._connection.call("GET", f"/{self._prefix}*", timeout=60)
        oldest = 1000 * (time.time() - FORGOTTEN)
        for index, told in found.items():
            # an index of this name may also be one of a store with the name "docs-parts"
            ours = told["mappings"].get("_meta", {}).get("parts_of") == self._name
            if ours and (index == self._index or int(told["settings"]["index"]["creation_date"]) < oldest):
                await self._connection.call("DELETE", f"/{index}", allow=(404,), timeout=SLOW)

    async def _names(self) -> Sequence[str]:
        answer = await self._connection.call("GET", self._published, allow=(404,))
        return answer["_source"]["names"] if answer else ()
