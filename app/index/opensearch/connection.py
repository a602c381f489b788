"""The connection to an OpenSearch cluster, by the address in DOCS_STORE: one HTTP client per event loop; failures are `StoreError`s."""

import asyncio
import json
import random
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

import aiohttp
import orjson
from yarl import URL

from app.core.errors import SettingsError, StoreError, StoreUnavailable
from app.core.log_message import masked

EXAMPLE = "opensearch://user:password@host:9200/index"

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
    """An address in parts; `url` has the scheme http or https and all hosts."""

    url: str
    index: str
    auth: tuple[str, str] | None
    layout: Layout


def parse(parts: SplitResult) -> Address:
    """The parts of an address as opensearch://user:password@host:9200,other:9200/index?replicas=1.

    Raises `SettingsError` that says what is wrong in it.
    """
    shown = f"DOCS_STORE={masked(parts.geturl())}"
    index = parts.path.strip("/")
    login, _, names = parts.netloc.rpartition("@")
    if not names.strip(",") or not index or "/" in index:
        raise SettingsError(f"{shown}: write it as {EXAMPLE}.")
    if index != index.lower() or index.startswith(("_", "-", "+", ".")):
        raise SettingsError(f"{shown}: an OpenSearch index name is lower case and starts with a letter.")
    hosts = ",".join(_host(name, shown) for name in names.split(","))
    user, _, password = login.partition(":")
    return Address(
        f"{'https' if parts.scheme == 'opensearchs' else 'http'}://{hosts}",
        index,
        (unquote(user), unquote(password)) if user else None,
        _layout(parts.query, shown),
    )


def hosts_of(url: str) -> tuple[str, ...]:
    """The address of each host in a URL with one or several of them, without user and password."""
    parts = urlsplit(url)
    return tuple(f"{parts.scheme}://{host}" for host in parts.netloc.rpartition("@")[2].split(","))


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

UNKNOWN_AUTHORITY = "Set DOCS_STORE_CA to the file of the authority that signed its certificate."
OTHER_HOST = "Write the host in DOCS_STORE as the certificate names it, or have one made for this name."
CERTIFICATES = {
    9: "Its certificate is not valid yet: look at the clocks of both machines.",
    10: "Its certificate has expired: renew it, or look at the clock of this machine.",
    62: OTHER_HOST,
    64: OTHER_HOST,
}
"""Advice on the result of a verification, by OpenSSL's numbers (X509_V_ERR_...)."""


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


@dataclass
class _Host:
    """One host of a cluster, which is left out for a while after it failed."""

    url: str
    _failures: int = 0
    dead_until: float = 0.0

    def failed(self) -> None:
        self.dead_until = time.monotonic() + DEAD_SECONDS * 2 ** min(self._failures, 2)
        self._failures += 1

    def answered(self) -> None:
        self._failures, self.dead_until = 0, 0.0


class _RefusedError(Exception):
    """An answer with a status that isn't wanted."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body


class Connection:
    """Calls the hosts of one cluster, in turn. `timeout` in seconds applies to each attempt; `ca` is a file with its
    certificate authority.

    A call that fails on one host is repeated on others. Each call may be repeated after a lost response; those that would
    fail the second time name the type of the error in `allow`. Calls that time out, or that a host refuses as not ready, are only
    repeated if they read. A read of a shard that starts waits for it, `STARTS` seconds at most.
    """

    def __init__(self, url: str, *, ca: str = "", timeout: float = 10.0, auth: tuple[str, str] | None = None) -> None:
        hosts = [urlsplit(host) for host in hosts_of(url)]
        if any(host.scheme not in ("http", "https") or not host.hostname for host in hosts):
            raise SettingsError(f"The store's address {url!r} should be as http://host:9200 or https://host:9200.")
        self.url = f"{hosts[0].scheme}://{','.join(host.netloc for host in hosts)}"
        self.timeout = timeout
        self._hosts = [_Host(f"{host.scheme}://{host.netloc}") for host in hosts]
        random.shuffle(self._hosts)  # many processes shouldn't all begin with the same one
        self._turn = -1
        login = {"authorization": aiohttp.encode_basic_auth(*auth, "utf-8")} if auth else {}
        self._headers = {"content-type": "application/json", **login}
        self._tls = _tls(ca) if hosts[0].scheme == "https" else True
        self._session: aiohttp.ClientSession | None = None
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
        session = await self._ready()
        target = f"{path}?{urlencode(params)}" if params else path
        content = body if body is None or isinstance(body, bytes) else to_json(body)
        seconds = self.timeout if timeout is None else max(timeout, self.timeout)
        reads = method == "GET" or path.endswith(READS)
        attempt, patience = len(self._hosts), time.monotonic() + STARTS
        while True:
            try:
                answer = await self._ask(session, method, target, content, seconds, allow)
            except (TimeoutError, aiohttp.ClientError, OSError, _RefusedError, ValueError) as error:
                kind = _reason(error.body)[0] if isinstance(error, _RefusedError) else ""
                if reads and kind == STARTING and time.monotonic() < patience:
                    await asyncio.sleep(0.05)
                    continue
                if attempt and session is self._session and self._may_repeat(error, reads=reads):
                    attempt -= 1
                    continue
                if attempt < len(self._hosts) and kind in allow:
                    return None
                raise self._error_from(error, f"{method} {path}") from error
            if allow and isinstance(answer, dict) and ("error" in answer or answer.get("found") is False):
                return None
            return answer

    async def _ask(  # what one attempt needs
        self,
        session: aiohttp.ClientSession,
        method: str,
        target: str,
        content: bytes | None,
        seconds: float,
        allow: tuple[int | str, ...],
    ) -> Any:
        """One attempt on the host whose turn it is. Raises `_RefusedError`."""
        host = self._next_host()
        url, limit = URL(f"{host.url}{target}", encoded=True), aiohttp.ClientTimeout(total=seconds)
        try:
            async with session.request(method, url, data=content, ssl=self._tls, timeout=limit) as response:
                status, answer = response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError, OSError):
            host.failed()
            raise
        (host.failed if status in UNREADY else host.answered)()
        if not 200 <= status < 300 and status not in allow:
            raise _RefusedError(status, answer.decode(errors="replace"))
        return orjson.loads(answer)

    def _next_host(self) -> _Host:
        """The next of the hosts in turn that didn't fail lately; if all did, the one that is tried again first."""
        self._turn += 1
        now = time.monotonic()
        alive = [host for host in self._hosts if host.dead_until <= now]
        return alive[self._turn % len(alive)] if alive else min(self._hosts, key=lambda host: host.dead_until)

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
        if isinstance(error, TimeoutError) or getattr(error, "status", 0) in UNREADY:
            return reads and len(self._hosts) > 1
        return isinstance(error, (aiohttp.ClientError, OSError))

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ready(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            await self.close()
            self._loop = loop
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, limit_per_host=CONNECTIONS),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def _error_from(self, error: Exception, doing: str) -> StoreError:
        if isinstance(error, TimeoutError):
            return StoreUnavailable(
                f"OpenSearch at {self.url} did not answer {doing} in time (DOCS_TUNING__STORE_TIMEOUT is {self.timeout:g} s). "
                "See whether it is overloaded, or raise the setting."
            )
        if isinstance(error, (aiohttp.ClientError, OSError)):
            return self._unreachable(error, doing)
        if isinstance(error, _RefusedError):
            return self.rejection(error.status, error.body, doing)
        return StoreError(f"{self.url} did not answer {doing} as OpenSearch does: {error}. Check DOCS_STORE.")

    def _unreachable(self, cause: Any, doing: str) -> StoreUnavailable:
        inner = getattr(cause, "certificate_error", None) or getattr(cause, "os_error", None) or cause
        if isinstance(inner, ssl.SSLError | ssl.CertificateError):
            said = getattr(inner, "verify_message", "") or inner
            advice = CERTIFICATES.get(getattr(inner, "verify_code", 0), UNKNOWN_AUTHORITY)
            return StoreUnavailable(f"No TLS with OpenSearch at {self.url} ({doing}): {said}. {advice}")
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
    """Type and reason of an error object, or of its JSON text."""
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
