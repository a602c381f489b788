"""The embedding space in two dimensions: the pages of each language and the distances of their counterparts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from app.core.types import Page, Vector
from app.index.protocols import Generation

MOST_PAGES = 400
CHUNKS_OF_PAGE = 3
READ_AT_ONCE = 300  # vectors: in JSON, they are a few megabytes


@dataclass(frozen=True, slots=True)
class Spot:
    """A page in the picture; `pair` is the position of its counterpart in another language, -1 without one."""

    title: str
    url: str
    language: str
    x: float
    y: float
    pair: int = -1


@dataclass(frozen=True, slots=True)
class Space:
    """The picture: spots, the share of the variance it shows, and the mean cosines of counterparts and of other pages."""

    spots: tuple[Spot, ...]
    shown: float
    counterparts: float | None
    others: float | None


async def draw(generation: Generation, progress: Callable[[int, int], None] = lambda *_: None) -> Space | None:
    """The picture of the indexed pages by the vectors of their first chunks; None for fewer than 3 pages with vectors."""
    pages = [page for page in await generation.pages() if page.chunk_ids][:MOST_PAGES]
    known = await _vectors_of_chunks(pages, generation, progress)
    pages = [page for page in pages if any(id_ in known for id_ in _first(page))]
    if len(pages) < 3:
        return None
    vectors = _means([[known[id_] for id_ in _first(page) if id_ in known] for page in pages])
    flat, shown = flattened(vectors)
    pairs = counterparts(pages)
    spots = tuple(
        Spot(page.title, page.url, page.language, float(x), float(y), pairs.get(i, -1))
        for i, (page, (x, y)) in enumerate(zip(pages, flat, strict=True))
    )
    cosines = vectors @ vectors.T
    linked = [float(cosines[i, j]) for i, j in pairs.items() if i < j]
    other = cosines[~np.eye(len(pages), dtype=bool)]
    return Space(spots, shown, float(np.mean(linked)) if linked else None, float(other.mean()))


def flattened(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The first two principal components, scaled to -1..1, and their share of the variance."""
    centred = vectors - vectors.mean(axis=0)
    left_vectors, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    flat = left_vectors[:, :2] * sizes[:2]
    spread = float((sizes**2).sum())
    return flat / (np.abs(flat).max() or 1.0), float((sizes[:2] ** 2).sum() / spread) if spread else 0.0


def counterparts(pages: Sequence[Page]) -> Mapping[int, int]:
    """Pairs of pages that are translations of each other: declared by the site, or with the same address in another
    language.
    """
    by_url = {page.url: i for i, page in enumerate(pages)}
    by_path: dict[tuple[str, str], int] = {}
    pairs: dict[int, int] = {}
    for i, page in enumerate(pages):
        alternates = [by_url[url] for url in page.alternates.values() if url in by_url and by_url[url] != i]
        key = _neutral(page.url, page.language)
        same = by_path.setdefault(key, i)
        other = alternates[0] if alternates else same if pages[same].language != page.language else i
        if other != i:
            pairs[i], pairs[other] = other, i
    return {i: j for i, j in pairs.items() if pairs.get(j) == i}


def _neutral(url: str, language: str) -> tuple[str, str]:
    parts = urlsplit(url)
    path = re.sub(rf"/{re.escape(language)}(?=/|$)", "/*", parts.path, count=1)
    return parts.netloc, path


def _first(page: Page) -> Sequence[str]:
    return page.chunk_ids[:CHUNKS_OF_PAGE]


async def _vectors_of_chunks(
    pages: Sequence[Page], generation: Generation, progress: Callable[[int, int], None]
) -> Mapping[str, Vector]:
    """The vectors of the first chunks of the pages, as the index has them: to embed them again takes minutes."""
    ids = [id_ for page in pages for id_ in _first(page)]
    vectors: dict[str, Vector] = {}
    if not hasattr(generation, "vectors"):  # a store from outside may have none
        return vectors
    for start in range(0, len(ids), READ_AT_ONCE):
        vectors |= await generation.vectors(ids[start : start + READ_AT_ONCE])
        progress(min(start + READ_AT_ONCE, len(ids)), len(ids))
    return vectors


def _means(vectors: Sequence[Sequence[Vector]]) -> NDArray[np.float64]:
    means = np.array([np.mean(of_page, axis=0) for of_page in vectors])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return np.asarray(np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 0), dtype=np.float64)
