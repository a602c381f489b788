"""The connection to an OpenSearch cluster, by the address in DOCS_STORE: one HTTP client per event loop; failures are `StoreError`s."""

import asyncio
import json
import logging
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
from opensearchpy import (
    AsyncOpenSearch,
    ConnectionError,  # noqa: A004
    ConnectionTimeout,
    TransportError,
)
from opensearchpy.exceptions import OpenSearchException

from app.core.errors import SettingsError, StoreError, StoreUnavailable
from app.core.log_message import masked

EXAMPLE = "opensearch://user:password@host:9200/index"
INDEX = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")

LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"shards": (1, 100), "replicas": (0, 10), "m": (2, 100), "ef_construction": (2, 1000), "ef_search": (2, 1000)}
)
"""The parameters of the address with their lowest and highest values."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Shards and replicas of the indices, and the parameters of their vector graph (HNSW).

    `replicas` None: one as soon as there is a second node. 0 for the others: the server's default.
    """

    shards: int = 1
    replicas: int | None = None
    m: int = 0
    ef_construction: int = 0
    ef_search: int = 0

    @property
    def copies(self) -> dict[str, Any]:
        """The index settings for the replicas."""
        if self.replicas is None:
            return {"auto_expand_replicas": "0-1"}
        return {"auto_expand_replicas": "false", "number_of_replicas": self.replicas}

    @property
    def graph(self) -> dict[str, int]:
        """The parameters with which the vector graph is built."""
        return {name: value for name in ("m", "ef_construction") if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Address:
    """An address in parts; `hosts` have the scheme http or https, a name and a port."""

    hosts: tuple[str, ...]
    index: str
    auth: tuple[str, str] | None = None
    layout: Layout = Layout()


def parse(address: str) -> Address:
    """The parts of an address as opensearch://user:password@host:9200,other:9200/index?replicas=1.

    Raises `SettingsError` that says what is wrong in it.
    """
    parts, shown = urlsplit(address), f"DOCS_STORE={masked(address)}"
    index = parts.path.strip("/")
    login, _, names = parts.netloc.rpartition("@")
    if not names.strip(",") or not index:
        raise SettingsError(f"{shown}: write it as {EXAMPLE}.")
    if not INDEX.fullmatch(index):
        raise SettingsError(f"{shown}: use lower-case letters, digits and - _ . only for the index, at most 200.")
    scheme = "https" if parts.scheme == "opensearchs" else "http"
    hosts = tuple(f"{scheme}://{_host(name, shown)}" for name in names.split(","))
    user, _, password = login.partition(":")
    auth = (unquote(user), unquote(password)) if user else None
    return Address(hosts, index, auth, _layout(parts.query, shown))


def _host(name: str, shown: str) -> str:
    host = urlsplit(f"//{name}")
    if not host.hostname:
        raise SettingsError(f"{shown}: a host is missing beside a comma.")
    try:
        port = host.port or 9200
    except ValueError as error:
        raise SettingsError(f"{shown}: the port isn't a number from 1 to 65535.") from error
    return f"[{host.hostname}]:{port}" if ":" in host.hostname else f"{host.hostname}:{port}"


def _layout(query: str, shown: str) -> Layout:
    values: dict[str, int] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in LIMITS:
            raise SettingsError(f"{shown}: {name!r} is not a parameter of it. These are: {', '.join(LIMITS)}.")
        lowest, highest = LIMITS[name]
        if not text.isdecimal() or not lowest <= int(text) <= highest:
            raise SettingsError(f"{shown}: {name} must be a number from {lowest} to {highest}.")
        values[name] = int(text)
    return Layout(**values)


SLOW = 300.0
"""Timeout in seconds for refreshes and deletions by query, which build the vector graph."""

CONNECTIONS = 64

DEAD_SECONDS = 5.0
"""A host that failed is tried again after this time; after its next failures twice and four times as long."""

ALL_SHARDS = {"preference": "docs-assistant", "allow_partial_search_results": "false"}
"""Parameters of each search: always the same copy of a shard, since copies differ in deleted rows, and so in scores; and an
error instead of the results of some shards only."""

READS = ("_search", "_msearch", "_mget")
UNREADY = (502, 503, 504)
STARTING = "illegal_index_shard_state_exception"
"""The error of a read while its shard starts: for some milliseconds after another process made the index."""
STARTS = 5.0  # seconds at most
CERTIFICATE = (
    "DOCS_STORE_CA names the file of its authority; it must be valid now, for the host as DOCS_STORE names it."
)


def to_json(value: Any) -> bytes:
    """JSON bytes. Accepts numpy arrays; replaces lone surrogates."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError:
        text = json.dumps(value, ensure_ascii=False, default=lambda other: other.tolist())
        return text.encode("utf-8", "replace")


def to_lines(*values: Any) -> bytes:
    """JSON lines for _bulk and _msearch."""
    return b"".join(to_json(value) + b"\n" for value in values)


class _Json:
    """The serializer for opensearch-py; bytes are sent unchanged."""

    mimetype = "application/json"

    def dumps(self, data: Any) -> Any:
        return data if isinstance(data, (str, bytes)) else to_json(data)

    def loads(self, text: str | bytes) -> Any:
        return orjson.loads(text)


class Connection:
    """Calls the hosts of one cluster, in turn. `timeout` in seconds applies to each attempt; `ca` is a file with its
    certificate authority.

    A call that fails on one host is repeated on others. Each call may be repeated after a lost response; those that would
    fail the second time name the type of the error in `allow`. Calls that time out, or that a host refuses as not ready, are only
    repeated if they read. A read of a shard that starts waits for it, `STARTS` seconds at most.
    """

    def __init__(
        self, hosts: Sequence[str], *, ca: str = "", timeout: float = 10.0, auth: tuple[str, str] | None = None
    ) -> None:
        self.url = ",".join(hosts)
        self.timeout = timeout
        self._hosts = len(hosts)
        self._arguments: dict[str, Any] = {
            "hosts": list(hosts),
            "http_auth": auth,
            "timeout": timeout,
            # we repeat calls ourselves; these errors let the pool leave the host out for a while
            "max_retries": 0,
            "retry_on_timeout": True,
            "retry_on_status": UNREADY,
            "dead_timeout": DEAD_SECONDS,
            "timeout_cutoff": 2,
            "pool_maxsize": CONNECTIONS,
            "serializer": _Json(),
        }
        if hosts[0].startswith("https:"):
            self._arguments["ssl_context"] = _tls(ca)
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        allow: tuple[int | str, ...] = (),
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the client, which names what timed out
    ) -> Any:
        """The parsed response; None if its status, or the type of error of a repeated call, is in `allow`."""
        client = await self._ready()
        statuses = tuple(status for status in allow if isinstance(status, int))
        reads = method == "GET" or path.endswith(READS)
        attempt, patience = self._hosts, time.monotonic() + STARTS
        while True:
            try:
                answer = await client.transport.perform_request(
                    method,
                    path,
                    params=dict(params) if params else None,
                    body=body,
                    timeout=None if timeout is None else max(timeout, self.timeout),
                    ignore=statuses,
                )
            except (OpenSearchException, ValueError) as error:
                kind = _reason(getattr(error, "info", None))[0]
                if reads and kind == STARTING and time.monotonic() < patience:
                    await asyncio.sleep(0.05)
                    continue
                if attempt and client is self._client and self._may_repeat(error, reads=reads):
                    attempt -= 1
                    continue
                if attempt < self._hosts and kind in allow:
                    return None
                raise self._error_from(error, f"{method} {path}") from error
            if allow and isinstance(answer, dict) and ("error" in answer or answer.get("found") is False):
                return None
            return answer

    async def run(
        self,
        doing: str,
        call: Callable[[AsyncOpenSearch], Awaitable[None]],
        *,
        allow: str,
        timeout: float,  # noqa: ASYNC109
    ) -> None:
        """Let a library use a client of its own, which tries each host; the error `allow` of a repeated call is none. Raises as `call` does."""
        waits = {"timeout": max(timeout, self.timeout), "max_retries": self._hosts - 1}
        async with AsyncOpenSearch(**self._arguments | waits) as client:
            try:
                await call(client)
            except (OpenSearchException, ValueError) as error:
                if _reason(getattr(error, "info", None))[0] != allow:
                    raise self._error_from(error, doing) from error

    async def bulk(self, lines: bytes) -> None:
        """Send bulk operations. Raises `StoreError` with the first failure and the number of failures."""
        answer = await self.call("POST", "/_bulk", lines, timeout=60)
        if answer["errors"]:
            results = [result for item in answer["items"] for result in item.values()]
            failed = [result for result in results if "error" in result]
            cause = failed[0]
            raise self.rejection(
                int(cause["status"]),
                cause["error"],
                f"{len(failed)} of {len(results)} rows, the first {cause['_id']} of {cause['_index']}",
            )

    def rejection(self, status: int, cause: Any, doing: str) -> StoreError:
        """The exception for a status and an error object or text from the server."""
        kind, reason = _reason(cause)
        where = f"OpenSearch at {self.url} refused {doing}"
        if kind == "cluster_block_exception" and status not in UNREADY:
            return StoreError(
                f"{where}: the index is read-only ({reason}). When its disk ran full: make room, then put "
                "index.blocks.read_only_allow_delete to null in the index settings."
            )
        if status in (401, 403):
            return StoreError(f"{where} ({status}: {reason}). Check user, password and rights in DOCS_STORE.")
        if kind == "index_not_found_exception":
            return StoreError(f"{where}: {reason}. The index was deleted under the service; ingest the sites again.")
        if "knn" in reason and ("No handler for type" in reason or "unknown setting" in reason):
            return StoreError(f"{where}: the k-NN plugin is missing ({reason}). Install opensearch-knn on the server.")
        if status == 429 or status >= 502:
            return StoreUnavailable(f"{where} ({status}: {reason}). It is overloaded or starting; try again later.")
        return StoreError(f"{where} ({status}, {kind}: {reason}).")

    def _may_repeat(self, error: Exception, *, reads: bool) -> bool:
        """True if another attempt may succeed: on another host, or on a new connection."""
        if isinstance(error, ConnectionTimeout) or getattr(error, "status_code", 0) in UNREADY:
            return reads and self._hosts > 1
        return isinstance(error, ConnectionError)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            # it leaves out those of hosts that failed
            for host, _ in client.transport.connection_pool.connection_opts:
                await host.close()

    async def _ready(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            await self.close()
            self._loop = loop
        if self._client is None:
            # failures are raised; the library would also log each with a traceback
            logging.getLogger("opensearch").setLevel(logging.ERROR)
            self._client = AsyncOpenSearch(**self._arguments)
        return self._client

    def _error_from(self, error: Exception, doing: str) -> StoreError:
        if isinstance(error, ConnectionTimeout):
            return StoreUnavailable(
                f"OpenSearch at {self.url} did not answer {doing} in time (DOCS_TUNING__STORE_TIMEOUT is {self.timeout:g} s). "
                "See whether it is overloaded, or raise the setting."
            )
        if isinstance(error, ConnectionError):
            return self._unreachable(error.info, doing)
        if isinstance(error, TransportError):
            return self.rejection(int(error.status_code), error.info or error.error, doing)
        return StoreError(f"{self.url} did not answer {doing} as OpenSearch does: {error}. Check DOCS_STORE.")

    def _unreachable(self, cause: Any, doing: str) -> StoreUnavailable:
        inner = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None) or cause
        if isinstance(inner, ssl.SSLError | ssl.CertificateError):
            said = getattr(inner, "verify_message", "") or inner
            return StoreUnavailable(f"No TLS with OpenSearch at {self.url} ({doing}): {said}. {CERTIFICATE}")
        return StoreUnavailable(
            f"OpenSearch at {self.url} can't be reached ({doing}): {inner}. Start it, or correct DOCS_STORE "
            "(opensearchs:// when it speaks TLS)."
        )


def _tls(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"DOCS_STORE_CA names {ca!r}, which isn't a readable file of certificates: {error}"
        ) from error


def _reason(cause: Any) -> tuple[str, str]:
    """Type and reason of an error object, or of its JSON text from opensearch-py."""
    if isinstance(cause, str):
        try:
            cause = orjson.loads(cause)
        except ValueError:
            return "", cause.strip()[:500]
    if isinstance(cause, dict) and isinstance(cause.get("error"), dict | str):
        cause = cause["error"]
    if not isinstance(cause, dict):
        return "", str(cause)[:500]
    deepest = (cause.get("root_cause") or [cause])[0]
    inner = cause.get("caused_by") or deepest.get("caused_by") or {}
    parts = [deepest.get("reason"), inner.get("reason") if inner.get("reason") != deepest.get("reason") else None]
    return str(deepest.get("type", "")), ": ".join(str(part) for part in parts if part)[:500]
