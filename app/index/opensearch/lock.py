"""The writer's lock across processes: a document that its owner renews, and others take over after it expires."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.core.errors import StoreBusy, StoreError
from app.index.opensearch.connection import Connection

log = logging.getLogger(__name__)

_held: set[str] = set()
"""Tokens of active writers in this process. A lock of this process with another token was left over by a failed release."""


class WriterLock:
    """The lock of an index. After a writer is killed, it lasts `seconds` longer, but not on the same machine."""

    def __init__(self, connection: Connection, meta: str, seconds: float) -> None:
        self._connection = connection
        self._path = f"/{meta}/_doc/lock"
        self._seconds = seconds
        self._token = uuid.uuid4().hex
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._renewed = 0.0
        self._version: dict[str, int] = {}
        self._heart: asyncio.Task[None] | None = None
        self._renewing = asyncio.Lock()

    @property
    def held(self) -> bool:
        """Whether this writer holds the lock."""
        return self._heart is not None

    async def is_free(self) -> bool:
        """True if no lock exists, False if a dead writer left one; writes nothing. Raises `StoreBusy` while a writer holds it."""
        found = await self._connection.call("GET", self._path, allow=(404,))
        if found:
            self._refuse_live_owner(found["_source"])
        return not found

    async def acquire(self) -> None:
        """Acquire the lock and keep renewing it. Raises `StoreBusy` while another writer holds it."""
        _held.add(self._token)
        try:
            if not await self._write({"op_type": "create"}):
                await self._take_over()
        except BaseException:
            _held.discard(self._token)
            raise
        self._heart = asyncio.create_task(self._beat())

    async def confirm(self) -> None:
        """Check that the lock is still held. Raises `StoreBusy` if it expired and another writer has taken it."""
        async with self._renewing:
            if time.time() - self._renewed > self._seconds / 2 and not await self._write(self._version):
                raise StoreBusy(
                    f"This run's lock on {self._path} went to another writer: it was not renewed for "
                    f"{self._seconds:g} s. Nothing was published; start it again."
                )

    async def release(self) -> None:
        """Release the lock. If the server can't be reached, the lock expires by itself."""
        if self._heart is not None:
            self._heart.cancel()
            with suppress(asyncio.CancelledError):
                await self._heart
            self._heart = None
        _held.discard(self._token)
        if self._version:
            version, self._version = self._version, {}
            try:
                await self._connection.call("DELETE", self._path, params=version, allow=(404, 409))
            except StoreError as error:
                log.warning("The writer's lock stays until it expires: %s", error)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / 3)
            try:
                async with self._renewing:
                    if not await self._write(self._version):
                        return  # lost; `confirm` raises
            except StoreError as error:
                log.warning("The writer's lock could not be renewed: %s", error)

    async def _write(self, condition: dict[str, Any]) -> bool:
        """Write the document with a new expiry if the condition holds."""
        now = time.time()
        body = {
            "token": self._token,
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
            "since": self._since,
            "expires": now + self._seconds,
        }
        answer = await self._connection.call("PUT", self._path, body, params=condition, allow=(409,))
        if answer is None:
            return await self._is_ours()
        self._version = {"if_seq_no": answer["_seq_no"], "if_primary_term": answer["_primary_term"]}
        self._renewed = now
        return True

    async def _is_ours(self) -> bool:
        """Whether a rejected write had succeeded before: the response to a first attempt may be lost."""
        found = await self._connection.call("GET", self._path, allow=(404,))
        if not found or found["_source"]["token"] != self._token:
            return False
        self._version = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        self._renewed = found["_source"]["expires"] - self._seconds
        return True

    async def _take_over(self) -> None:
        found = await self._connection.call("GET", self._path, allow=(404,))
        if found is None:
            condition: dict[str, Any] = {"op_type": "create"}
        else:
            self._refuse_live_owner(found["_source"])
            condition = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        if not await self._write(condition):
            raise self._busy(found["_source"] if found else {})

    def _refuse_live_owner(self, owner: dict[str, Any]) -> None:
        if owner["expires"] > time.time() and not _is_dead(owner):
            raise self._busy(owner)

    def _busy(self, owner: dict[str, Any]) -> StoreBusy:
        return StoreBusy(
            f"Another run is writing to this index: process {owner.get('pid', '?')} on {owner.get('host', '?')}, since "
            f"{owner.get('since', 'just now')}. Wait until it is done; if it was killed, its lock ends by itself "
            f"{self._seconds:g} s after its last sign of life."
        )


def _machine() -> str:
    """Identifies this boot of this machine and, on Linux, this container: process ids are unique only within it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode()}"


def _is_dead(owner: dict[str, Any]) -> bool:
    """True if the owner ran on this machine, or in this process, and no longer exists."""
    if owner["machine"] != _machine():
        return False
    if owner["pid"] == os.getpid():
        return owner["token"] not in _held
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
