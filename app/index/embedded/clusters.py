"""Search in two stages: the nearest clusters of vectors first, then the chunks in those only."""

from __future__ import annotations

from dataclasses import dataclass

# Below this many rows comparing with every vector is quicker than keeping an index of them.
ROWS_FOR_CLUSTERS = 20_000
FEWEST_IN_CLUSTER = 10
# Small clusters follow a question closely: with a fifth of them searched, the root alone found .90 of the nearest 30.
TIMES_ROOT = 8


@dataclass(frozen=True, slots=True)
class Clusters:
    """How many clusters there shall be (0: by the number of chunks), and which share of them is searched, in percent."""

    wanted: int = 0
    searched: int = 20

    def of(self, rows: int) -> int:
        """How many this many chunks are divided into; 0 where all of them are compared."""
        if not self.wanted:
            return round(TIMES_ROOT * rows**0.5) if rows >= ROWS_FOR_CLUSTERS else 0
        most = min(self.wanted, rows // FEWEST_IN_CLUSTER)
        return most if most > 1 else 0

    def probes(self, rows: int) -> int:
        """How many of them are searched, at least one."""
        return max(1, self.of(rows) * self.searched // 100)
