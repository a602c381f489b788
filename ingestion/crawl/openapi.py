"""OpenAPI documents as sources: one at an address of its own, and those among the files of a directory."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ingestion.crawl.exchange import PageRequest

FILE_TYPES: Mapping[str, str] = MappingProxyType(
    {".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml"}
)
"""The endings of files that may be OpenAPI documents, with their media types."""

TYPES = frozenset(
    {"application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"}
    | {"application/vnd.oai.openapi", "application/vnd.oai.openapi+json", "application/openapi+json"}
    | {"application/openapi+yaml", "application/vnd.oai.openapi+yaml", "application/swagger+json"}
)
_PLAIN = frozenset({"text/plain", "application/octet-stream", "binary/octet-stream", ""})
_ACCEPT = "application/json, application/yaml;q=0.9, */*;q=0.1"
_JSON = re.compile(r'"(?:openapi|swagger)"\s*:\s*"[23]\.')
_YAML = re.compile(r"(?m)^[\"']?(?:openapi|swagger)[\"']?[ \t]*:[ \t]*[\"']?[23](?:\.|\b)")


def openapi_request(url: str, etag: str, last_modified: str) -> PageRequest:
    """The request for an OpenAPI document: servers send it as any of these types."""
    return PageRequest(url, etag, last_modified, types=TYPES | _PLAIN, accept=_ACCEPT)


def may_be_openapi(media_type: str, url: str) -> bool:
    """True for a download that is JSON or YAML as far as its type and address tell."""
    named = url.partition("?")[0].endswith(tuple(FILE_TYPES))
    return media_type in TYPES or (media_type in _PLAIN and named)


def is_openapi(text: str) -> bool:
    """True for JSON or YAML that says that it is an OpenAPI document of version 2 or 3."""
    start = text.lstrip("\ufeff \t\r\n")
    return (_JSON if start.startswith("{") else _YAML).search(start) is not None
