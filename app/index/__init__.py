"""The index: stores opened by address and used through their protocols, and the ranking of their results.

Called by assistants, pipeline, ingestion and eval; imports app.core and app.text.
"""

from pathlib import Path
from typing import Any, cast

from app.core.errors import SettingsError
from app.core.log_message import masked
from app.core.plugins import load
from app.core.settings import Settings
from app.index.protocols import Draft, Generation, Store

NOTICE_SECONDS = 1.0  # delay until a service notices that another process has published a newer generation

__all__ = ["Draft", "Generation", "Store", "directory_of", "open_store"]


def open_store(settings: Settings) -> Store:
    """The store at DOCS_STORE: a directory, an OpenSearch address, or a class of your own as package.module:Class.

    Opens no connection yet. Raises `SettingsError` for an invalid address.
    """
    address = settings.store
    if not address:
        raise SettingsError("DOCS_STORE is empty: name a directory, or opensearch://host:9200/index.")
    if address.startswith(("opensearch://", "opensearchs://")):
        from app.index.opensearch.connection import parse
        from app.index.opensearch.store import OpenSearchStore

        return OpenSearchStore(
            parse(address),
            keep=settings.generations,
            ca=settings.store_ca,
            timeout=settings.tuning.store_timeout,
            notice_seconds=NOTICE_SECONDS,
            vector_share=settings.vector_share(""),
        )
    if "://" in address:
        raise SettingsError(
            f"DOCS_STORE={masked(address)}: unknown scheme. Name a directory, or write opensearch://host:9200/index (opensearchs:// for TLS)."
        )
    if (directory := directory_of(settings)) is None:
        own: type[Any] = load(address, object, "DOCS_STORE")
        return cast("Store", own(settings))
    from app.index.embedded.store import EmbeddedStore

    return EmbeddedStore(directory, keep=settings.generations)


def directory_of(settings: Settings) -> Path | None:
    """The directory of the embedded store; None if DOCS_STORE is another store."""
    module, colon, name = settings.store.partition(":")
    own = colon and name.isidentifier() and "/" not in module
    return None if own or "://" in settings.store else Path(settings.store).expanduser()
