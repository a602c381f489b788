"""What the embedders have in common that keep vectors, so that no text is embedded twice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from app.core.types import Vector
from app.models.protocols import Embedder


class KeepingEmbedder(ABC):
    """The embedder, which is asked only for passages whose vectors aren't kept."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder

    async def dimension(self) -> int:
        """Length of the vectors."""
        return await self._embedder.dimension()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        return await self._embedder.embed_queries(texts)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        found = await self._found(texts)
        if new := [text for text in dict.fromkeys(texts) if text not in found]:
            made = dict(zip(new, await self._embedder.embed_passages(new), strict=True))
            await self._keep(made)
            found |= made
        return [found[text] for text in texts]

    @abstractmethod
    async def _found(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are kept, by text."""

    @abstractmethod
    async def _keep(self, vectors: Mapping[str, Vector]) -> None:
        """Keep these vectors of texts."""

    async def close(self) -> None:
        """Close the embedder; what is kept stays."""
        await self._embedder.close()
