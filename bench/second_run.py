"""What a night costs in which nothing changed, against a loop of the same conditional requests; one in which 1 % did;
and nights with five changes of a site whose sitemap has no lastmod, or a truthful one, or whose pages have no validators.

    python -m bench.second_run [--pages 1000] [--parallel 4] [--latency 20] [--rounds 3] [--opensearch http://127.0.0.1:9200]

The site and the embeddings endpoint are a process of their own, which counts what it is asked. Each store is measured
on an index of its own, which is deleted in the end.
"""

import argparse
import asyncio
import hashlib
import multiprocessing
import multiprocessing.connection
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx
from aiohttp import web

from app.core.settings import Settings
from app.index import open_store
from app.models import open_embedder
from bench.crawl import page
from ingestion.report import Report
from ingestion.run import ingest

DIMENSION = 64
CHANGED = 5
"""Pages that change in a night."""


class Site:
    """The pages with ETags, and an embeddings endpoint; `/-/counts` tells what was asked since it was last called."""

    def __init__(self, pages: int, latency: float, body: Callable[[int, int], str] = page) -> None:
        self.latency = latency
        self.bodies = {f"/p{n}": body(n, pages) for n in range(pages)}
        self.changed = False
        self.nights = 0
        self.validators = True
        self.not_modified = self.sent = self.calls = self.texts = 0

    async def read(self, request: web.Request) -> web.Response:
        """A page, or 304; the sitemap has no validators, so it is sent each time."""
        if request.path == "/sitemap.txt":
            return web.Response(text="\n".join(self.bodies))
        if request.path == "/sitemap.xml":
            return web.Response(text=self.sitemap(str(request.url.origin())), content_type="application/xml")
        if request.path not in self.bodies:
            return web.Response(status=404)
        body = self.bodies[request.path]
        await asyncio.sleep(self.latency)
        number = int(request.path[2:])
        if self.changed and number % 100 == 7:
            body = body.replace("<p>", "<p>This sentence is new. ", 1)
        if night := self.changed_in(number):
            body = body.replace("<p>", f"<p>This sentence is of night {night}. ", 1)
        if not self.validators:
            self.sent += 1
            return web.Response(text=body, content_type="text/html")
        etag = f'"{hashlib.blake2b(body.encode(), digest_size=8).hexdigest()}"'
        if request.headers.get("If-None-Match") == etag:
            self.not_modified += 1
            return web.Response(status=304, headers={"ETag": etag})
        self.sent += 1
        return web.Response(text=body, content_type="text/html", headers={"ETag": etag})

    def changed_in(self, number: int) -> int:
        """The last night in which this page changed: five pages do in each."""
        night = number // CHANGED + 1
        return night if night <= self.nights else 0

    def sitemap(self, origin: str) -> str:
        """The pages with the dates of their last changes."""
        dates = {
            path: f"2024-{1 + self.changed_in(int(path[2:])):02}-{1 + int(path[2:]) % 28:02}" for path in self.bodies
        }
        urls = (f"<url><loc>{origin}{path}</loc><lastmod>{date}</lastmod></url>" for path, date in dates.items())
        return f"<urlset>{''.join(urls)}</urlset>"

    async def embed(self, request: web.Request) -> web.Response:
        """Vectors made of the texts' hashes."""
        texts = (await request.json())["input"]
        self.calls, self.texts = self.calls + 1, self.texts + len(texts)
        digests = [hashlib.shake_128(text.encode()).digest(DIMENSION) for text in texts]
        rows = [{"index": n, "embedding": [byte - 127.5 for byte in digest]} for n, digest in enumerate(digests)]
        return web.json_response({"data": rows})

    async def counts(self, request: web.Request) -> web.Response:
        """What was asked since the last time; `?changed=1` changes a paragraph on each hundredth page, `?nights=2` on
        ten, `?validators=0` leaves out the ETags.
        """
        self.changed = request.query.get("changed", "") == "1"
        self.nights = int(request.query.get("nights", "0"))
        self.validators = request.query.get("validators", "1") == "1"
        told = {"304": self.not_modified, "200": self.sent, "calls": self.calls, "texts": self.texts}
        self.not_modified = self.sent = self.calls = self.texts = 0
        return web.json_response(told)


def serve(
    pages: int,
    latency: float,
    ready: multiprocessing.connection.Connection,
    body: Callable[[int, int], str] = page,
) -> None:
    """Answer as the site and the embeddings endpoint, on the port that is sent."""

    async def main() -> None:
        site, app = Site(pages, latency, body), web.Application()
        app.router.add_get("/-/counts", site.counts)
        app.router.add_post("/v1/embeddings", site.embed)
        app.router.add_get("/{path:.*}", site.read)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


@dataclass
class Bench:
    """One store against the site."""

    url: str
    pages: int
    settings: Settings
    opensearch: str = ""

    async def counts(self, **now: str) -> dict[str, int]:
        """What the site was asked since the last time; `now` is how it is from now on."""
        async with httpx.AsyncClient(trust_env=False) as client:
            told: dict[str, int] = (await client.get(f"{self.url}/-/counts", params=now)).json()
            return told

    async def run(self, sitemap: str = "sitemap.txt") -> Report:
        """One run, as `docs-assistant ingest` does it."""
        store, embedder = open_store(self.settings), open_embedder(self.settings)
        try:
            return await ingest([f"{self.url}/{sitemap}"], store=store, embedder=embedder, settings=self.settings)
        finally:
            await store.close()
            await embedder.close()

    async def index(self) -> dict[str, str]:
        """ETag by address, and all chunk ids as keys."""
        store = open_store(self.settings)
        try:
            pages = await (await store.live()).pages()
            return {p.fetch.fetched_url: p.fetch.etag for p in pages} | {
                id_: "" for p in pages for id_ in p.derived.chunk_ids
            }
        finally:
            await store.close()

    async def loop(self, etags: Mapping[str, str]) -> tuple[float, float]:
        """Seconds, and those of CPU, of a loop over the same pages that only asks whether they changed, as many at once."""
        urls = iter([f"{self.url}/p{number}" for number in range(self.pages)])
        began, cpu = time.monotonic(), time.process_time()
        async with aiohttp.ClientSession() as client:

            async def work() -> None:
                for url in urls:
                    async with client.get(url, headers={"If-None-Match": etags[url]}) as answer:
                        assert answer.status == 304

            await asyncio.gather(*(work() for _ in range(self.settings.tuning.crawl_parallel)))
        return time.monotonic() - began, time.process_time() - cpu

    def written(self) -> Mapping[str, Any]:
        """What differs as soon as anything was written: files with their times, or operations of each index."""
        if not self.opensearch:
            files = (
                path for path in Path(self.settings.store).rglob("*") if path.is_file() and path.name != "runs.json"
            )
            return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
        name = self.settings.store.rsplit("/", 1)[1]
        found = httpx.get(f"{self.opensearch}/{name}-*/_stats?level=shards", trust_env=False, timeout=60).json()
        pages = {index: told for index, told in found["indices"].items() if not index.endswith("-meta")}
        return {index: [s[0]["seq_no"] for s in told["shards"].values()] for index, told in pages.items()}

    def delete(self) -> None:
        """Leave nothing on the server or in the directory."""
        if not self.opensearch:
            shutil.rmtree(self.settings.store, ignore_errors=True)
        else:
            name = self.settings.store.rsplit("/", 1)[1]
            for index in httpx.get(f"{self.opensearch}/_cat/indices/{name}-*?h=index", trust_env=False).text.split():
                httpx.delete(f"{self.opensearch}/{index}", trust_env=False, timeout=60).raise_for_status()
            httpx.delete(f"{self.opensearch}/_search/pipeline/{name}*", trust_env=False, timeout=60)

    async def measure(self, rounds: int) -> None:
        """Print what the second run takes and costs, and the one after a change."""
        await self.counts()
        first = await self.run()
        known, written = await self.index(), self.written()
        print(f"  first run: {first.seconds:.1f} s, {await self.counts()}")
        beyond: list[tuple[float, float]] = []
        for _ in range(rounds):
            loops = [await self.loop(known)]
            await self.counts()
            cpu = time.process_time()
            report = await self.run()
            cpu, told = time.process_time() - cpu, await self.counts()
            loops.append(await self.loop(known))
            plain, plain_cpu = (statistics.mean(values) for values in zip(*loops, strict=True))
            beyond.append((report.seconds - plain, cpu - plain_cpu))
            state = "nothing written" if self.written() == written else "SOMETHING WRITTEN"
            print(
                f"  second run: {report.seconds:.2f} s ({cpu:.2f} s CPU), loop {plain:.2f} s ({plain_cpu:.2f}), "
                f"beyond {beyond[-1][0]:.2f} s ({beyond[-1][1]:.2f}); {told}, {state}"
            )
        wall, busy = (statistics.median(values) for values in zip(*beyond, strict=True))
        print(f"  beyond the fetches: median {wall:.2f} s ({busy:.2f} s CPU)")
        await self.counts(changed="1")
        report = await self.run()
        told, new = await self.counts(), len((await self.index()).keys() - known.keys())
        print(f"  1 % changed: {report.seconds:.2f} s, {told}; chunks that weren't there before: {new}")

    async def nights(self) -> None:
        """Print what nights with five changes cost: the third is the first in which a truthful lastmod is believed."""
        for sitemap, validators in (
            ("sitemap.txt", "1"),
            ("sitemap.xml", "1"),
            ("sitemap.txt", "0"),
            ("sitemap.xml", "0"),
        ):
            print(f"  five changes a night, {'with' if '.xml' in sitemap else 'without'} lastmod, ETags: {validators}")
            self.delete()
            await self.counts(validators=validators)
            await self.run(sitemap)
            for night in (1, 2, 3):
                await self.counts(nights=str(night), validators=validators)
                written, cpu = self.written(), time.process_time()
                report = await self.run(sitemap)
                cpu = time.process_time() - cpu
                told = await self.counts(nights=str(night), validators=validators)
                print(
                    f"    night {night}: {report.seconds:.2f} s ({cpu:.2f} s CPU), {told['304'] + told['200']} pages requested, {report.counts['changed']} changed, {self._operations(written)}"
                )

    def _operations(self, before: Mapping[str, Any]) -> str:
        now = self.written()
        if not self.opensearch:
            return f"{sum(now[name] != before.get(name) for name in now)} files written"
        return f"{sum(sum(one['max_seq_no'] - before[name][at]['max_seq_no'] for at, one in enumerate(shards)) for name, shards in now.items() if name in before)} operations"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--latency", type=float, default=20.0, help="of the site, in ms")
    parser.add_argument("--rounds", type=int, default=3, help="0: only nights with changes")
    parser.add_argument("--opensearch", default="", metavar="URL", help="also measure on this server")
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    spawn = multiprocessing.get_context("spawn")
    server = spawn.Process(target=serve, args=(arguments.pages, arguments.latency / 1000, theirs), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    with tempfile.TemporaryDirectory() as folder:
        stores = {f"{folder}/index": ""}
        if arguments.opensearch:
            name = f"bench-{uuid.uuid4().hex[:8]}"
            stores[f"{arguments.opensearch.replace('http', 'opensearch', 1)}/{name}"] = arguments.opensearch
        for store, opensearch in stores.items():
            settings = Settings.load(
                None,
                store=store,
                embedding_url=f"{url}/v1",
                embedding_model="hashes",
                crawl_parallel=arguments.parallel,
            )
            bench = Bench(url, arguments.pages, settings, opensearch)
            print("OpenSearch" if opensearch else "embedded")
            try:
                if arguments.rounds:
                    asyncio.run(bench.measure(arguments.rounds))
                asyncio.run(bench.nights())
            finally:
                bench.delete()
    server.terminate()


if __name__ == "__main__":
    main()
