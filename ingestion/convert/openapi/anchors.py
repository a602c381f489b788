"""The address of an operation on the page that shows an OpenAPI document, by the program that makes the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from urllib.parse import quote

from ingestion.convert.openapi.api import Operation
from ingestion.convert.slugs import github

_UNSAFE = re.compile(r"[\s<>{}\[\]`\"\\#]")


def _swagger(operation: Operation) -> str:
    identifier = operation.id or operation.method + re.sub(r"\W", "_", operation.path, flags=re.ASCII)
    return f"/{operation.tag or 'default'}/{identifier}"


def _redoc(operation: Operation) -> str:
    within = f"tag/{'-'.join(operation.tag.split())}/" if operation.tag else ""
    if operation.id:
        return f"{within}operation/{operation.id}"
    pointer = operation.path.replace("~", "~0").replace("/", "~1")
    return f"{within}paths/{pointer}/{operation.method}"


def _scalar(operation: Operation) -> str:
    within = f"tag/{github([operation.tag])[0]}/" if operation.tag else ""
    return f"{within}{operation.method.upper()}{operation.path}"


RENDERERS: Mapping[str, Callable[[Operation], str]] = MappingProxyType(
    {"swagger": _swagger, "redoc": _redoc, "scalar": _scalar}
)
"""By the word for `anchors` of a source."""


def anchor(operation: Operation, form: str) -> str:
    """The fragment of a link to the operation; empty when the form says nothing of operations.

    The form is a renderer's name, or a pattern with {tag}, {operation}, {method}, {METHOD} and {path}.
    """
    if form in RENDERERS:
        made = RENDERERS[form](operation)
    elif "{" in form:
        values = {
            "tag": operation.tag,
            "operation": operation.id,
            "method": operation.method,
            "METHOD": operation.method.upper(),
            "path": operation.path,
        }
        made = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), form)
    else:
        return ""
    return _UNSAFE.sub(lambda found: quote(found[0]), made)
