"""The vectors of chunks, by which operators see the neighbours of a chunk, in every store."""

import numpy as np
import pytest

from tests.contract.pages import DIMENSION, RECIPE, SITE, chunks_of, page_of, publish, vector


async def test_the_vectors_of_chunks_are_those_that_were_written(store):
    """Up to their length; without unknown chunks, those of other generations, and those whose vector is zero."""
    await publish(store, {"/a": ["red green", "blue"]})
    before, gone = await store.live(), chunks_of(SITE + "/a", "blue")[0].id
    async with await store.draft(RECIPE) as draft:
        chunks = chunks_of(SITE + "/a", "red green", "violet")
        await draft.put(page_of(SITE + "/a", chunks), chunks, {chunks[1].id: [0.0] * DIMENSION})
        await draft.publish()
    live = await store.live()
    found = await live.vectors([chunks[0].id, "unknown", gone, chunks[1].id])
    assert list(found) == [chunks[0].id]
    values = np.asarray(found[chunks[0].id])
    assert values / np.linalg.norm(values) == pytest.approx(vector("red green"), abs=1e-3)
    assert set(await before.vectors([gone])) == {gone}
    assert await live.vectors([]) == {}
