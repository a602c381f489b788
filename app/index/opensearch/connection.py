"""The connection to an OpenSearch server: one HTTP client per event loop; failures are `StoreError`s."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from opensearchpy import AsyncOpenSearch, ConnectionError, ConnectionTimeout, TransportError  # noqa: A004
from opensearchpy.exceptions import OpenSearchException

from app.core.errors import SettingsError, StoreError, StoreUnavailable

SLOW = 300.0
"""Timeout in seconds for refreshes and deletions by query, which build the vector graph."""

CONNECTIONS = 64


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
    """Calls one server. `timeout` in seconds applies to each call; `ca` is a file with its certificate authority."""

    def __init__(self, url: str, *, ca: str = "", timeout: float = 10.0, auth: tuple[str, str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"The store's address {url!r} should be as http://host:9200 or https://host:9200.")
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self.timeout = timeout
        tls = parts.scheme == "https"
        self._arguments: dict[str, Any] = {
            "hosts": [{"host": parts.hostname, "port": parts.port or (443 if tls else 9200), "use_ssl": tls}],
            "http_auth": auth,
            "timeout": timeout,
            "max_retries": 1,  # for an idle connection that the server has closed
            "retry_on_status": (),
            "pool_maxsize": CONNECTIONS,
            "serializer": _Json(),
        }
        if tls:
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
        allow: tuple[int, ...] = (),
        timeout: float | None = None,  # noqa: ASYNC109 - handed to the client, which names what timed out
    ) -> Any:
        """The parsed response; None if its status is in `allow`."""
        client = await self._ready()
        try:
            answer = await client.transport.perform_request(
                method,
                path,
                params=dict(params) if params else None,
                body=body,
                timeout=None if timeout is None else max(timeout, self.timeout),
                ignore=allow,
            )
        except (OpenSearchException, ValueError) as error:
            raise self._error_from(error, f"{method} {path}") from error
        if allow and isinstance(answer, dict) and ("error" in answer or answer.get("found") is False):
            return None
        return answer

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
        if kind == "cluster_block_exception":
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

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

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
                f"OpenSearch at {self.url} did not answer {doing} in time (DOCS_STORE_TIMEOUT is {self.timeout:g} s). "
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
            return StoreUnavailable(
                f"No TLS with OpenSearch at {self.url} ({doing}): {inner}. Set DOCS_STORE_CA to the file of the "
                "authority that signed its certificate, and use the host name that the certificate is for."
            )
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
