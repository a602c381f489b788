"""What embedders cost: processor and wall time of a question and of a passage, and the memory of a process with each.

    python -m bench.embedders ../shared/eval/questions.jsonl local:static local:multilingual-e5-small [local:/path/to/model]

The questions are those of the set; the passages are the pages of our own documentation, cut at 1,500 characters.
Each embedder has a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from multiprocessing import get_context
from pathlib import Path

from app.api.site import find_docs
from app.core.memory import peak_mb
from app.core.settings import Settings
from app.models import open_embedder
from eval.questions.cases import load_cases

QUESTIONS = 200
PASSAGES = 24
LENGTH = 1500


async def measured(name: str, questions: list[str], passages: list[str]) -> str:
    """A row of the table."""
    embedder = open_embedder(Settings.load(None, embedding_model=name))
    await embedder.dimension()
    columns = []
    for embed, texts in ((embedder.embed_queries, questions), (embedder.embed_passages, passages)):
        processor, wall = time.process_time(), time.perf_counter()
        for text in texts:
            await embed([text])
        columns += [(time.process_time() - processor) / len(texts), (time.perf_counter() - wall) / len(texts)]
    await embedder.close()
    return f"| {name} | " + " | ".join(f"{1000 * seconds:.1f}" for seconds in columns) + f" | {peak_mb()} |"


def row(name: str, questions: list[str], passages: list[str]) -> None:
    """Print a row."""
    print(asyncio.run(measured(name, questions, passages)), flush=True)


def main() -> None:
    """Print the table."""
    file, *names = sys.argv[1:]
    questions = list(dict.fromkeys(case.question for case in load_cases(Path(file))))[:QUESTIONS]
    texts = [path.read_text(encoding="utf-8")[:LENGTH] for path in sorted(find_docs().rglob("*.md"))][:PASSAGES]
    print("| embedder | question, processor ms | wall ms | passage, processor ms | wall ms | memory MB |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in names:
        process = get_context("spawn").Process(target=row, args=(name, questions, texts))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
