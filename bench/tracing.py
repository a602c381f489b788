"""What tracing costs a search: off, and on with a collector that takes the spans: `python -m bench.tracing [ROUNDS]`.

Off is measured as the share of the spans alone: a search with as many spans as it has, and the time of these spans.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from app.cli import tracing
from app.core import spans
from tests.app.api.indexed import indexed
from tests.app.api.scripted import client_of
from tests.otlp import receiver

SEARCH = {"query": "How do I create a persistent volume?"}


def empty_spans(count: int) -> float:
    """Milliseconds of so many spans while tracing is off, of which half are calls."""
    began = time.perf_counter()
    for _ in range(count // 2):
        with spans.span("step") as span:
            if span:
                span.note({})
        with spans.call("store", "index", "search", {}):
            pass
    return (time.perf_counter() - began) * 1000


async def searches(folder: Path, rounds: int) -> float:
    """The median of the CPU milliseconds of a search."""
    async with indexed(folder, with_model=False) as service, client_of(service.app) as client:
        times = []
        for _ in range(rounds):
            began = time.process_time()
            assert (await client.post("/v1/search", json=SEARCH)).status_code == 200
            times.append((time.process_time() - began) * 1000)
        return statistics.median(times[rounds // 10 :])


async def main(rounds: int) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder, receiver() as collector:
        off = await searches(Path(folder) / "off", rounds)
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        tracing.start()
        on = await searches(Path(folder) / "on", rounds)
        tracing.stop()
        count = len(collector.spans) // rounds
        own = min(empty_spans(1000 * count) / 1000 for _ in range(5))
        print(f"{count} spans of a search; CPU off {off:.2f} ms, on {on:.2f} ms ({on / off:.2f}x)")
        print(f"tracing off: {own * 1000:.1f} us of a search ({own / off:.2%})")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
