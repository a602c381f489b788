"""The units of chunks (sentences, items, rows, code) as they are searched, some of them in a stretch: a second, finer granularity.

A row that answers is one line of a chunk, whose vector it hardly changes. So only the stretches of a chunk are embedded, and
their mean is the chunk's vector. The stretches of the candidates of both legs are compared with the question too, and a chunk
also counts by its nearest one. LlamaIndex calls them child nodes, and that small-to-big. The vectors of a chunk's stretches
are one value in its row, so that they need no second index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate, count, takewhile
from typing import TYPE_CHECKING, Any

from app.core.types import Candidate, Chunk, Legs, Query, Vector
from app.index.protocols import Generation
from app.index.ranking.legs import best_first
from app.text.units import stretch_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = "units-2"
"""Part of the index's recipe: raise the number when a text gets other stretches, or their vectors are kept in another form."""

POOL = 30
"""Candidates from the top of each leg whose stretches are compared: those of 100 find the same."""

POOL_OF_INDIRECT = 10
"""The same of each further leg, of which hardly more reach the hits."""

FEWEST_CHUNKS = 100
"""Of an index: the mean of fewer is what they are about, not what all texts of a language share."""

STEPS = 127  # of a number of a vector
TINY = 1e-6  # the square of a distance from the centre that is none


def texts_to_embed(chunk: Chunk) -> dict[str, str]:
    """The texts of the chunk's stretches by the keys of their vectors; of a chunk of one stretch its own text by its id."""
    texts = stretch_texts(chunk)
    if len(texts) == 1:
        return {chunk.id: chunk.embedded_text}
    return {_key(chunk, number): text for number, text in enumerate(texts)}


def _key(chunk: Chunk, number: int) -> str:
    return f"{chunk.id}/{number}"


def _rows(chunk: Chunk, vectors: Mapping[str, Vector]) -> dict[str, NDArray[np.float32]]:
    """The vectors of the chunk's stretches, by key, with length 1 or 0."""
    keys = takewhile(vectors.__contains__, (_key(chunk, number) for number in count()))
    return {key: _unit(vectors[key]) for key in keys}


def _unit(vector: Vector) -> NDArray[np.float32]:
    import numpy as np

    row = np.asarray(vector, np.float32)
    return np.asarray(row / (math.sqrt(row.dot(row)) or 1))  # as `np.linalg.norm`, which takes three times as long


def means(chunks: Iterable[Chunk], vectors: Mapping[str, Vector], texts: Mapping[str, str]) -> dict[str, Vector]:
    """The vectors of these chunks by id: means of those of their stretches, which weigh as much as their texts are long."""
    import numpy as np

    found = dict[str, Any]()
    for chunk in chunks:
        if rows := _rows(chunk, vectors):
            weights = np.array([len(texts[key]) for key in rows], np.float32)
            found[chunk.id] = _unit(weights @ np.array(list(rows.values())))
    return found


def packed(chunk: Chunk, vectors: Mapping[str, Vector]) -> bytes:
    """The vectors of the chunk's stretches as a store keeps them, in 8 bits a number; its own in place of unknown ones."""
    import numpy as np

    units = np.array([*_rows(chunk, vectors).values()] or [_unit(vectors[chunk.id])])
    steps = np.abs(units).max(axis=1, keepdims=True) / STEPS
    small = np.rint(units / np.where(steps > 0, steps, 1)).astype(np.int8)
    return bytes(steps.astype("<f4").tobytes() + small.tobytes())


async def with_units(generation: Generation, legs: Legs, query: Query) -> Legs:
    """The legs with that of the stretches: the best candidates of both, with the cosine of their nearest one."""
    if query.vector is None or not any(query.vector):
        return legs
    candidates = {one.id: one for one in (*legs.vector[:POOL], *legs.lexical[:POOL])}
    for leg_ in legs.indirect.values():
        candidates |= {one.id: one for one in leg_[:POOL_OF_INDIRECT]}
    asked = _unit(query.vector)
    stored = await generation.units(list(candidates))
    stretches = _Stretches({id_: stored[id_] for id_ in candidates if id_ in stored}, len(asked))
    leg, nearest = list[Candidate](), dict[str, int]()
    for id_, near in stretches.by_chunk(stretches.small @ asked * stretches.steps):
        best = max(near)
        leg.append(candidates[id_]._replace(score=best))
        if len(near) > 1:
            nearest[id_] = near.index(best)
    return replace(
        legs,
        units=tuple(best_first(leg)),
        nearest=nearest,
        meaning=await _meaning(
            generation, query.language, asked, stretches, {id_: one.language for id_, one in candidates.items()}
        ),
    )


async def nearness(
    generation: Generation, vector: Vector, language: str, chunks: Mapping[str, str]
) -> dict[str, float]:
    """The cosines of a text in this language with the nearest stretch of each of the chunks, whose languages are given by id.

    They are those of vectors from the centre of their language: empty in an index that is too small to have one, and without stretches.
    """
    if generation.info.chunks < FEWEST_CHUNKS:
        return {}
    stored, centres = await generation.units(list(chunks)), await generation.language_centres()
    known = {id_: code for id_, code in chunks.items() if id_ in stored and code in centres}
    return cosines(vector, language, stored, known, centres)


class _Stretches:
    """The vectors of the stretches of some chunks, below one another: numpy is called a few times for all of them.

    A vector is a row of `small` times its number in `steps`.
    """

    def __init__(self, stored: Mapping[str, bytes], dimension: int) -> None:
        import numpy as np

        counts = [len(content) // (dimension + 4) for content in stored.values()]
        ends = list(accumulate(counts))
        self._bounds = list(zip(stored, [0, *ends[:-1]], ends, strict=True)) if stored else []
        parts = list(zip(stored.values(), counts, strict=True))
        self.steps = np.frombuffer(b"".join([content[: 4 * count] for content, count in parts]), "<f4")
        small = np.frombuffer(b"".join([content[4 * count :] for content, count in parts]), np.int8)
        self.small = small.reshape(-1, dimension).astype(np.float32)

    def by_chunk(self, values: NDArray[np.float32]) -> list[tuple[str, list[float]]]:
        """The values of the stretches of each chunk, by its id."""
        every = values.tolist()
        return [(id_, every[begin:end]) for id_, begin, end in self._bounds]


async def _meaning(
    generation: Generation,
    language: str,
    asked: NDArray[np.float32],
    stretches: _Stretches,
    languages: Mapping[str, str],
) -> float | None:
    """The cosine of the nearest stretch; None in an index that is too small."""
    if generation.info.chunks < FEWEST_CHUNKS or not len(stretches.steps):
        return None
    near = _cosines(asked, language, stretches, languages, await generation.language_centres())
    return max([0.0, *near.values()])


def cosines(
    vector: Vector,
    language: str,
    stored: Mapping[str, bytes],
    languages: Mapping[str, str],
    centres: Mapping[str, Vector],
) -> dict[str, float]:
    """The cosine of a text with the nearest stretch of each chunk, which are `stored` by chunk id as `packed` made them."""
    stretches = _Stretches({id_: stored[id_] for id_ in languages}, len(vector))
    return _cosines(_unit(vector), language, stretches, languages, centres)


def _cosines(
    asked: NDArray[np.float32],
    language: str,
    stretches: _Stretches,
    languages: Mapping[str, str],
    centres: Mapping[str, Vector],
) -> dict[str, float]:
    """By chunk, the cosine of vectors from the centre of their language: models give any two texts a high one."""
    import numpy as np

    lengths = np.square(stretches.steps) * np.einsum("ij,ij->i", stretches.small, stretches.small)
    found = dict[str, float]()
    for code in set(languages.values()) & centres.keys():  # a store may leave out languages with few chunks
        centre = np.asarray(centres[code], np.float32)
        question = asked - np.asarray(centres.get(language, centre), np.float32)
        along, off = (stretches.small @ np.array([question, centre]).T * stretches.steps[:, None]).T
        # |v - c|² is |v|² - 2 vc + |c|², so that no row is moved
        distances = np.sqrt(np.maximum(lengths - 2 * off + centre @ centre, TINY)) * (np.linalg.norm(question) or 1)
        near = (along - centre @ question) / distances
        found |= {id_: max(own) for id_, own in stretches.by_chunk(near) if languages[id_] == code}
    return found
