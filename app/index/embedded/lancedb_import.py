"""Imports lancedb, without what only remote catalogs need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from app.core.allocator import bound_memory
from app.core.errors import SettingsError

REMOTE = "lance_namespace_urllib3_client"
"""A generated HTTP client of remote catalogs, with 366 functions that pydantic prepares. lancedb imports it for names of types:
two thirds of the seconds that its import takes, and 18 MB, in every process that opens an index in a directory."""


def load_lancedb() -> Any:
    """Import lancedb, without its warnings on every query. Raises `SettingsError` if it isn't installed."""
    os.environ.setdefault("LANCE_LOG", "error")
    bound_memory()
    try:
        with _without_remote_catalogs():
            import lancedb
    except ImportError as error:
        raise SettingsError(
            "The embedded store needs lancedb, which isn't installed: "
            "install docs-assistant[embedded], or set DOCS_STORE to an opensearch:// address."
        ) from error
    return lancedb


class _Unused(ModuleType):
    """A module whose names are empty classes."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _UnusedFinder(MetaPathFinder, Loader):
    """Finds the modules of `REMOTE` without reading them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == REMOTE else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Unused(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def _without_remote_catalogs() -> Iterator[None]:
    """What is imported in this context gets empty classes from `REMOTE`; what is imported later gets the real ones."""
    if "lancedb" in sys.modules or REMOTE in sys.modules:
        yield
        return
    finder = _UnusedFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in {REMOTE, "lance_namespace"}]:
            del sys.modules[name]
