"""The words of the chunks: counted while an index is published, so that no reader waits for it, and read as one row."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.core.allocator import give_back_memory
from app.core.errors import IndexDamaged
from app.index.embedded.pointer import TableVersion
from app.index.embedded.tables import Tables, lance_errors
from app.index.vocabulary import Vocabulary

COUNTED_AT_ONCE = 1000  # chunks whose words are in memory


async def write_words(tables: Tables, chunks: TableVersion) -> TableVersion:
    """Count the words of these chunks and write them to a new table: 10 s for 100,000 chunks."""
    import pyarrow as pa

    words = await count_words(await tables.open_version(chunks))
    row = {"tokens": words.tokens, "counts": words.counts}
    schema = pa.schema([pa.field(name, pa.large_binary(), nullable=False) for name in row])
    name, table = await tables.create("words", pa.Table.from_pylist([row], schema=schema))
    with lance_errors("write the words of the index"):
        return TableVersion(name, await table.version())


async def read_words(table: Any) -> Vocabulary:
    """The words in this table."""
    with lance_errors("read the words of the index", IndexDamaged):
        (row,) = (await table.query().to_arrow()).to_pylist()
        return Vocabulary(row["tokens"], row["counts"])


async def count_words(chunks: Any) -> Vocabulary:
    """The words of the chunks in this table: 10 s for 100,000."""
    counts: Counter[str] = Counter()
    with lance_errors("count the words of the index"):
        async for batch in await chunks.query().select(["tokens"]).to_batches(max_batch_length=COUNTED_AT_ONCE):
            counts.update(await asyncio.to_thread(_count, batch.column("tokens").to_pylist()))
    words = await asyncio.to_thread(Vocabulary.of, counts)
    counts.clear()
    await asyncio.to_thread(give_back_memory)
    return words


def _count(texts: Sequence[str]) -> Counter[str]:
    return Counter(token for text in texts for token in set(text.split()))
