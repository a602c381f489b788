"""Search in two stages against the exhaustive one: recall of the first 5 to 30 chunks, by share of clusters searched.

clusters.py [CLUSTERS ...] takes the docstrings of the installed Python packages as varied texts, every 80th of them as a
question (the first sentence; its text isn't indexed), and the vectors inside the package. Without numbers it takes what the
store would for as many chunks, beyond the size from which it clusters by itself. Ends with 1 where 20 % of any of these
numbers of clusters give less than .95 of what comparing with all vectors gives.
"""

from __future__ import annotations

import ast
import asyncio
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.core.generation import Recipe
from app.core.types import Chunk, Page, Query, Vector
from app.index.embedded.clusters import TIMES_ROOT, Clusters
from app.index.embedded.store import EmbeddedStore
from app.index.protocols import Generation
from app.models.static import DIMENSION, StaticEmbedder

DEPTHS = (5, 10, 15, 20, 25, 30)
SHARES = (10, 20)
WANTED = 0.95
MOST = 12_600
EACH = 80
SHORTEST = 80
OF_PAGE = 200


def texts() -> list[str]:
    """Docstrings of at least 80 characters, each once, in the order of their files."""
    folders = {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}
    found: dict[str, None] = {}
    for file in (file for folder in sorted(folders) for file in sorted(Path(folder).rglob("*.py"))):
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            continue
        found.update(dict.fromkeys(_docstrings(tree)))
        if len(found) >= MOST:
            break
    return list(found)[:MOST]


def _docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if len(text) >= SHORTEST:
                yield text[:1500]


async def filled(store: EmbeddedStore, indexed: Sequence[str], embedder: StaticEmbedder) -> Generation:
    """The texts as chunks of pages with 200 each."""
    async with await store.draft(Recipe(embedder.name, DIMENSION, "docstrings", "a")) as draft:
        for start in range(0, len(indexed), OF_PAGE):
            url = f"https://docs.example.org/{start}"
            part = indexed[start : start + OF_PAGE]
            chunks = [Chunk(f"{start + i}", "docs", url, i, text, "en", "") for i, text in enumerate(part)]
            vectors = dict(zip([c.id for c in chunks], await embedder.embed_passages(part), strict=True))
            await draft.put(Page(url, "docs", "", "en", "", str(start)), chunks, vectors)
        await draft.publish()
    return await store.live()


async def nearest(live: Generation, vector: Vector, *, exact: bool) -> tuple[list[str], float]:
    """Ids, best first, and milliseconds."""
    query = Query((), vector, depth=max(DEPTHS), exact=exact)
    began = time.perf_counter()
    leg = (await live.search(query)).vector
    return [candidate.id for candidate in leg], (time.perf_counter() - began) * 1000


async def measure(folder: str, count: int, indexed: Sequence[str], questions: Sequence[Vector]) -> bool:
    """Prints a line for each share; whether 20 % are enough."""
    embedder = StaticEmbedder()
    store = EmbeddedStore(Path(folder) / str(count), clusters=Clusters(count))
    live = await filled(store, indexed, embedder)
    exact = [await nearest(live, vector, exact=True) for vector in questions]
    passed = True
    for share in SHARES:
        part = replace(live, clusters=Clusters(count, share))  # type: ignore[type-var]
        found = [await nearest(part, vector, exact=False) for vector in questions]
        recalls = [
            statistics.mean(len({*a[:k]} & {*b[:k]}) / k for (a, _), (b, _) in zip(exact, found, strict=True))
            for k in DEPTHS
        ]
        ms = statistics.median(spent for _, spent in found) / statistics.median(spent for _, spent in exact)
        print(f"{count:>8}  {share:>4} %  " + "  ".join(f"{recall:.3f}" for recall in recalls) + f"  x{ms:.2f}")
        passed = passed and (share != 20 or min(recalls) >= WANTED)
    await store.close()
    return passed


async def main(counts: Sequence[int]) -> int:
    """All numbers of clusters, one after the other."""
    every = texts()
    asked, indexed = every[::EACH], [text for i, text in enumerate(every) if i % EACH]
    questions = await StaticEmbedder().embed_queries([text.split(". ")[0].split("\n\n")[0] for text in asked])
    print(f"{len(indexed)} chunks, {len(questions)} questions")
    print("clusters  searched  " + "  ".join(f"at {k:<3}" for k in DEPTHS) + " time against all")
    with tempfile.TemporaryDirectory() as folder:
        numbers = counts or [round(TIMES_ROOT * len(indexed) ** 0.5)]
        passed = [await measure(folder, count, indexed, questions) for count in numbers]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main([int(word) for word in sys.argv[1:]])))
