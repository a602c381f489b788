"""Two-stage vector search: the nearest clusters first, then only the chunks in them."""

from __future__ import annotations

from dataclasses import dataclass

# Below this number of rows, comparing every vector is faster than an index.
ROWS_FOR_CLUSTERS = 20_000
FEWEST_IN_CLUSTER = 10
# Small clusters: with the square root alone, searching a fifth of them found only .90 of the nearest 30.
TIMES_ROOT = 8


@dataclass(frozen=True, slots=True)
class Clusters:
    """The number of clusters (0: by the number of chunks), and the percentage of them that is searched."""

    wanted: int = 0
    searched: int = 20

    def of(self, rows: int) -> int:
        """The number of clusters for this number of chunks; 0 if all chunks are compared."""
        if not self.wanted:
            return round(TIMES_ROOT * rows**0.5) if rows >= ROWS_FOR_CLUSTERS else 0
        most = min(self.wanted, rows // FEWEST_IN_CLUSTER)
        return most if most > 1 else 0

    def probes(self, rows: int) -> int:
        """The number of clusters to search, at least one."""
        return max(1, self.of(rows) * self.searched // 100)
