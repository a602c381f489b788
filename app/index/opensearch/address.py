"""The address in DOCS_STORE: the hosts of a cluster, the name of the index, and how its indices are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from app.core.errors import SettingsError
from app.core.masking import masked

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
