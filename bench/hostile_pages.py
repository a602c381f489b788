"""Pages made to break a run, among good ones: what becomes of each, and what they cost.

    python -m bench.hostile_pages [--pages 1000] [--hostile 200]

Serves the good pages of `bench.crawl` and hostile ones of many kinds and sizes, indexes the good ones alone, then all,
and prints how many of each are in the index, why the others are not, and the ratio of the two times. Exits with 1 when
a good page is missing, a hostile one has no report, or the run took more than 1.5 times as long.
"""

import argparse
import asyncio
import multiprocessing
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from bench.crawl import Answer, FreeEmbedder, serve
from ingestion.options import RunOptions
from ingestion.report import Report
from ingestion.run import ingest
from tests.ingestion.hostile import Hostile, bombs, pages

SIZES = (5_000, 20_000, 60_000, 100_000, 200_000)


def answers(hostile: list[Hostile], good: int) -> dict[str, Answer]:
    """The hostile pages, and a sitemap of them between the good ones."""
    found = {
        f"/h{n}": (one.body, "\r\n".join([one.media_type, *(f"{k}: {v}" for k, v in one.headers.items())]))
        for n, one in enumerate(hostile)
    }
    paths = [f"/p{n}" for n in range(good)]
    for n in range(len(hostile)):
        paths.insert(n * (good // len(hostile) + 1), f"/h{n}")
    return {**found, "/all.txt": ("\n".join(paths).encode(), "text/plain")}


async def index(sitemap: str) -> tuple[Report, float]:
    """One run into an empty index, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddedStore(Path(folder))
        began = time.monotonic()
        report = await ingest(
            [sitemap],
            store=store,
            embedder=FreeEmbedder(),
            settings=Settings.load(None),
            options=RunOptions(force=True),
        )
        seconds = time.monotonic() - began
        await store.close()
    return report, seconds


def told(report: Report, hostile: list[Hostile]) -> int:
    """Print what became of the hostile pages; the number of those with a report."""
    found = {page.url.rpartition("/")[2]: page for page in report.pages}
    became: dict[str, Counter[str]] = {}
    for number, one in enumerate(hostile):
        page = found.get(f"h{number}")
        reason = re.sub(r"[\d.,]+", "N", page.reason or page.outcome)[:70] if page else "no report"
        became.setdefault(one.name, Counter())[reason] += 1
    for name, reasons in became.items():
        print(f"  {name}: {'; '.join(f'{count} x {reason}' for reason, count in reasons.items())}")
    return sum(f"h{number}" in found for number in range(len(hostile)))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--hostile", type=int, default=200)
    arguments = parser.parse_args()
    hostile = [*bombs(), *pages(SIZES)][: arguments.hostile]
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(arguments.pages, 0.02, theirs, answers(hostile, arguments.pages)), daemon=True
    )
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    try:
        _, alone = asyncio.run(index(f"{url}/sitemap.txt"))
        report, seconds = asyncio.run(index(f"{url}/all.txt"))
        _, again = asyncio.run(index(f"{url}/sitemap.txt"))
    finally:
        server.terminate()
    reported = told(report, hostile)
    good = sum(page.read for page in report.pages if re.search(r"/p\d+$", page.url))
    ratio = seconds / ((alone + again) / 2)
    print(f"good pages indexed: {good} of {arguments.pages}; hostile ones with a report: {reported} of {len(hostile)}")
    harmless = sum(page.read for page in report.pages) - good
    print(f"of the hostile ones {harmless} turned out harmless and are indexed, {reported - harmless} are left out")
    print(f"good ones alone {alone:.1f} and {again:.1f} s, all {seconds:.1f} s: ratio {ratio:.2f}")
    return 0 if good == arguments.pages and reported == len(hostile) and ratio <= 1.5 else 1


if __name__ == "__main__":
    sys.exit(main())
