"""Tests of the columns that a generation keeps in memory."""

from __future__ import annotations

import pyarrow as pa

from app.index.embedded.generation import Columns


def test_candidates_and_rows_are_found_in_any_order_of_rows() -> None:
    rows = [7 << 32, 3, 1 << 32, 5]
    content = pa.table(
        {
            "id": ["d", "b", "c", "a"],
            "url": ["u2", "u1", "u2", "u1"],
            "language": ["cs", "en", "cs", "en"],
            "modified": ["", "2026-01-01", "", ""],
            "versions": [["2.0"], [], ["1.0", "2.0"], []],
            "collection": ["docs"] * 4,
            "_rowid": pa.array(rows, pa.uint64()),
        }
    )
    columns = Columns(content)
    found = columns.candidates(pa.array([1 << 32, 3, 7 << 32], pa.uint64()), [0.5, 0.9, 0.5])
    told = [(one.id, one.url, one.language, one.score) for one in found]
    assert told == [("b", "u1", "en", 0.9), ("c", "u2", "cs", 0.5), ("d", "u2", "cs", 0.5)]
    assert found[0].dated == "2026-01-01"
    assert found[1].versions == ("1.0", "2.0")
    assert columns.rows_of(["d", "unknown", "a"]) == {"d": 7 << 32, "a": 5}


def test_an_index_without_chunks_has_no_candidates() -> None:
    names = ("id", "url", "language", "modified", "collection")
    fields = [*(pa.field(name, pa.string()) for name in names), pa.field("versions", pa.list_(pa.string()))]
    columns = Columns(pa.schema([*fields, pa.field("_rowid", pa.uint64())]).empty_table())
    assert columns.candidates(pa.array([], pa.uint64()), []) == ()
    assert columns.rows_of(["a"]) == {}
