"""The embedder of a service for which none is configured."""

from __future__ import annotations

from collections.abc import Mapping

from app.models import e5
from app.models.protocols import Embedder
from app.models.static import StaticEmbedder

BETTER = f"local:{e5.NAME}"
"""The model of the package that finds more than static vectors, and takes longer to index."""


class DefaultEmbedder(StaticEmbedder):
    """Static vectors. `others` has multilingual-e5-small, for an index that was built with it, where it can run."""

    def __init__(self, max_chars: int) -> None:
        super().__init__()
        better = None if e5.unusable() else e5.E5Embedder(max_chars)
        self.others: Mapping[str, Embedder] = {better.name: better} if better else {}

    async def close(self) -> None:
        """Release the weights and threads of all."""
        await super().close()
        for other in self.others.values():
            await other.close()
