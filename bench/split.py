"""How each splitter cuts a folder of Markdown: pages a second, lengths of chunks, and what one inserted paragraph changes.

split.py FOLDER [KIND ...] prints a table; run it alone on the machine. The seconds are processor time of one core, without
the embedding that `semantic` asks for (its vectors are those inside the package).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.core.settings import Settings
from app.core.types import Chunk, Page, Vector
from app.models.static import StaticEmbedder
from ingestion.convert import SourceText, convert
from ingestion.split import SPLITTERS, Splitter, open_splitter

INSERTED = "This paragraph was inserted later. It says something about storage, and that is all it says."
PLACES = 4
ROUNDS = 5


def corpus(folder: Path) -> list[Page]:
    """Every Markdown file below the folder as a page."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in {".md", ".mdx"})
    return [_page(file) for file in files]


def _page(file: Path) -> Page:
    media_type = "text/mdx" if file.suffix == ".mdx" else "text/markdown"
    url = f"https://docs.example.org/{file.stem}"
    made = convert(SourceText(url, file.read_text("utf-8"), media_type))
    return Page(url, "docs", made.title, "en", made.markdown, "")


def cut(splitter: Splitter, page: Page, embedder: StaticEmbedder) -> tuple[tuple[Chunk, ...], float]:
    """(chunks, processor seconds without embedding)."""
    began = time.process_time()
    windows = splitter.windows(page)
    spent = time.process_time() - began
    vectors: Sequence[Vector] = asyncio.run(embedder.embed_passages(windows)) if windows else ()
    began = time.process_time()
    chunks = splitter.split(page, vectors)
    return chunks, spent + time.process_time() - began


def changed(splitter: Splitter, page: Page, embedder: StaticEmbedder) -> list[int]:
    """New chunks after a paragraph was inserted at each of some places of the page."""
    before = {chunk.id for chunk in cut(splitter, page, embedder)[0]}
    paragraphs = page.markdown.split("\n\n")
    counts: list[int] = []
    for place in range(1, PLACES + 1):
        at = len(paragraphs) * place // (PLACES + 1)
        if "\n\n".join(paragraphs[:at]).count("```") % 2:
            continue  # in the middle of code
        edited = replace(page, markdown="\n\n".join([*paragraphs[:at], INSERTED, *paragraphs[at:]]))
        counts.append(len({chunk.id for chunk in cut(splitter, edited, embedder)[0]} - before))
    return counts


def main(folder: Path, kinds: Sequence[str]) -> None:
    """Print a row for each kind."""
    pages, embedder = corpus(folder), StaticEmbedder()
    print(f"{len(pages)} pages, {sum(len(page.markdown) for page in pages):,} characters\n")
    print(
        "| splitter | pages/s | chunks | median characters | 10 % below | 10 % above | new chunks after an edit | most |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in kinds:
        splitter = open_splitter(Settings.load(None, splitter=kind))
        cut(splitter, pages[0], embedder)  # loads what it needs
        rounds = [[cut(splitter, page, embedder) for page in pages] for _ in range(ROUNDS)]
        rate = max(len(pages) / sum(spent for _, spent in made) for made in rounds)
        lengths = sorted(len(chunk.text) for chunks, _ in rounds[0] for chunk in chunks)
        edits = [count for page in pages for count in changed(splitter, page, embedder)]
        print(
            f"| {splitter.name} | {rate:.0f} | {len(lengths)} | {statistics.median(lengths):.0f} | "
            f"{lengths[len(lengths) // 10]} | {lengths[-len(lengths) // 10]} | {statistics.mean(edits):.2f} | {max(edits)} |"
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:] or list(SPLITTERS))
