"""What keeping answers costs: CPU a request, in the event loop and in all threads, with and without the database.

    python -m bench.conversations [--answers 2000] [--clients 1 20] [--database postgresql://…]

The answers are scripted, in one process, so that nothing but the API and the database is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from app.api.server import create_app
from app.conversations.opening import open_conversations
from app.core.settings import Settings
from app.core.turn import Done, Source, Text, Usage
from tests.app.api.scripted import Scripted, ScriptedAssistants, client_of

WORDS = 150
SOURCES = tuple(
    Source(n, f"Page {n}", f"https://docs.test/{n}", "Section", "en", "A snippet of a page. " * 14, 0.9)
    for n in range(1, 6)
)
SCRIPT = (*(Text(f"word{n} ") for n in range(WORDS)), *SOURCES, Usage(1000, WORDS), Done())
BODY = {
    "model": "docs-assistant",
    "messages": [{"role": "user", "content": "How do I create a volume? " * 4}],
    "stream": True,
}


async def measured(settings: Settings, folder: Path, answers: int, clients: int) -> tuple[float, float, float]:
    """Milliseconds of CPU a request in this thread and in all, and of waiting for an answer (median)."""
    store = open_conversations(settings, folder)
    app = create_app(ScriptedAssistants((Scripted(script=SCRIPT),)), settings, conversations=store)
    waited: list[float] = []

    async def ask(count: int) -> None:
        for _ in range(count):
            began = time.perf_counter()
            response = await client.post("/v1/chat/completions", json=BODY)
            waited.append(time.perf_counter() - began)
            assert response.text.endswith("data: [DONE]\n\n")

    async with client_of(app) as client:
        await ask(50)
        waited.clear()
        loop, everything = time.thread_time(), time.process_time()
        await asyncio.gather(*(ask(answers // clients) for _ in range(clients)))
        loop, everything = time.thread_time() - loop, time.process_time() - everything
    if store:
        await store.close()
    return loop * 1000 / answers, everything * 1000 / answers, statistics.median(waited) * 1000


def main() -> None:
    """Print a row for each number of clients, without and with the database, in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 20])
    parser.add_argument("--database", default="")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("clients  kept   loop ms  all ms  answer ms (CPU a request; median of the rounds)")
    for clients in options.clients:
        rows: dict[int, list[tuple[float, float, float]]] = {0: [], 30: []}
        for _ in range(options.rounds):
            for days, found in rows.items():
                with tempfile.TemporaryDirectory() as folder:
                    settings = Settings.load(None, retention_days=days, database=options.database)
                    found.append(asyncio.run(measured(settings, Path(folder), options.answers, clients)))
        for days, found in rows.items():
            loop, everything, wait = (statistics.median(column) for column in zip(*found, strict=True))
            print(f"{clients:7}  {'yes' if days else 'no':4}  {loop:8.3f}  {everything:6.3f}  {wait:9.2f}")


if __name__ == "__main__":
    main()
