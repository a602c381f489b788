"""What the ranking reads of every chunk, kept in memory: reading it from the files took as long as the search itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any

import numpy as np

from app.core.types import Candidate

CANDIDATE = ("id", "url", "language", "modified", "versions", "collection")
ROW = "_rowid"


class _Repeated:
    """A column whose values are kept once: they are few."""

    def __init__(self, column: Any) -> None:
        numbers: dict[Any, int] = {}
        if hasattr(column.type, "value_type"):  # lists, which Arrow doesn't encode
            found = [numbers.setdefault(tuple(value), len(numbers)) for value in column.to_pylist()]
            self._values: list[Any] = list(numbers)
        else:
            encoded = column.combine_chunks().dictionary_encode()
            found, self._values = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        self._numbers = np.array(found, np.uint32)

    def at(self, places: Any) -> list[Any]:
        """The values at these places."""
        return [self._values[number] for number in self._numbers[places].tolist()]


class Columns:
    """The columns of a candidate by LanceDB's row id, of one version of the table: about 100 bytes for each chunk.

    `content` is an Arrow table of `CANDIDATE` and the row ids. Sorting takes .1 s for 100,000 rows, so call it in a thread.
    """

    def __init__(self, content: Any) -> None:
        import pyarrow.compute as pc

        rows = content.column(ROW).to_numpy()
        order = np.argsort(rows, kind="stable")
        content = content.select(list(CANDIDATE)).take(order)
        self._rows = rows[order]
        self._ids = content.column("id").combine_chunks()
        self._repeated = [_Repeated(content.column(name)) for name in CANDIDATE[1:]]
        self._by_id = pc.sort_indices(self._ids).to_numpy().astype(np.uint32)

    def candidates(self, rows: Any, scores: Iterable[float]) -> tuple[Candidate, ...]:
        """The chunks in these rows with these scores, best first."""
        places = np.searchsorted(self._rows, rows)
        urls, languages, *others = (column.at(places) for column in self._repeated)
        ids = self._ids.take(places).to_pylist()
        made = starmap(Candidate, zip(ids, urls, languages, scores, *others, strict=True))
        return tuple(sorted(made, key=lambda candidate: (-candidate.score, candidate.id)))

    def rows_of(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The row ids of the chunks with these ids; without unknown ones."""
        found: dict[str, int] = {}
        for id_ in ids:
            first = bisect_left(
                self._by_id, id_.encode(), key=lambda place: self._ids[int(place)].as_buffer().to_pybytes()
            )
            if first < len(self._by_id) and self._ids[place := int(self._by_id[first])].as_py() == id_:
                found[id_] = int(self._rows[place])
        return found
