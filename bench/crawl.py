"""How fast a site is crawled, converted and split, against a loop that only downloads it; and with what memory.

    python -m bench.crawl [--pages 1000] [--parallel 4] [--latency 20] [--rounds 1]

Makes its own site of varied pages, serves it from a process of its own with the latency (ms) of a real server, and
prints pages a second at the same number of requests at once, the ratio to the loop, and the memory along the way of

- a dry run, which reads the sitemap, fetches, converts, tells languages, merges twins and splits, all but embedding
  and writing: the crawler by itself, which is what the loop is held against;
- a whole run into an empty index of the embedded store, with vectors that cost next to nothing.
"""

import argparse
import asyncio
import hashlib
import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from app.core.settings import Settings
from app.core.types import Vector
from app.index.embedded.store import EmbeddedStore
from ingestion.options import RunOptions
from ingestion.run import ingest

EN = [
    "cluster",
    "volume",
    "storage",
    "node",
    "network",
    "service",
    "deployment",
    "user",
    "access",
    "request",
    "server",
    "image",
    "key",
    "container",
    "policy",
]
CS = [
    "úložiště",
    "svazek",
    "uzel",
    "síť",
    "služba",
    "nasazení",
    "uživatel",
    "přístup",
    "požadavek",
    "server",
    "obraz",
    "klíč",
    "kontejner",
    "pravidlo",
]
VERBS = {
    "en": ["creates", "uses", "needs", "allows", "stores", "finds", "deletes"],
    "cs": ["vytváří", "používá", "potřebuje", "ukládá", "najde"],
}
SERVER = "site"
CODE = "kubectl get pods -n {0}\nhelm install {0} ./chart --set size={1}\n# {0} {1}\nexport NAME='{0}'"


class FreeEmbedder:
    """Vectors that cost next to nothing: an embedder's own time is no matter of the crawler."""

    name = "free-64"

    async def dimension(self) -> int:
        """Length of the vectors."""
        return 64

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text."""
        return [[byte - 127.5 for byte in hashlib.shake_128(text.encode()).digest(64)] for text in texts]

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text."""
        return await self.embed_queries(texts)

    async def close(self) -> None:
        """Nothing to let go of."""


def _sentence(rng: random.Random, language: str) -> str:
    words = CS if language == "cs" else EN
    glue = ("a", "pro", "na", "který se") if language == "cs" else ("and", "for the", "of a", "which is")
    said = [rng.choice(words), rng.choice(VERBS[language])]
    for _ in range(rng.randint(2, 7)):
        said += [rng.choice(glue), rng.choice(words)]
    return " ".join(said).capitalize() + "."


def _sentences(rng: random.Random, language: str, count: int) -> str:
    return " ".join(_sentence(rng, language) for _ in range(count))


def _section(rng: random.Random, language: str, number: int) -> str:
    parts = [f'<h2 id="s{number}">{_sentence(rng, language)[:40]}<a class="headerlink" href="#s{number}">¶</a></h2>']
    parts += [f"<p>{_sentences(rng, language, rng.randint(2, 8))}</p>" for _ in range(rng.randint(1, 5))]
    if rng.random() < 0.6:
        code = CODE.format(rng.choice(EN), rng.randint(1, 99))
        spans = "\n".join(f'<span class="n">{line}</span>' for line in code.split("\n"))
        parts.append(f'<div class="highlight language-sh"><pre><span></span><code>{spans}</code></pre></div>')
    if rng.random() < 0.3:
        rows = "".join(
            f"<tr><td>{rng.choice(EN)}</td><td>{rng.randint(1, 999)}</td></tr>" for _ in range(rng.randint(3, 20))
        )
        parts.append(f"<table><thead><tr><th>Name</th><th>Value</th></tr></thead><tbody>{rows}</tbody></table>")
    if rng.random() < 0.4:
        parts.append(
            "<ul>" + "".join(f"<li>{_sentence(rng, language)}</li>" for _ in range(rng.randint(2, 8))) + "</ul>"
        )
    return "".join(parts)


def page(number: int, pages: int) -> str:
    """A page with navigation, scripts and 1 to 14 sections, as documentation generators write them (about 35 kB)."""
    rng = random.Random(number)
    language = "cs" if number % 4 == 0 else "en"
    nav = "".join(
        f'<li class="md-nav__item"><a href="/p{rng.randint(0, pages)}">{_sentence(rng, language)[:30]}</a></li>'
        for _ in range(120)
    )
    sections = "".join(_section(rng, language, n) for n in range(rng.randint(1, 14)))
    return (
        f"<!doctype html><html lang={language}><head><title>Page {number}</title><style>{'.a{color:red}' * 200}</style>"
        f"<script>{'var a = 1;' * 300}</script></head><body><nav class=md-nav><ul>{nav}</ul></nav><main>"
        f"<article class=md-content__inner><h1 id=top>Page {number} {_sentence(rng, language)[:20]}</h1>{sections}"
        f"</article></main><footer>{'Footer. ' * 30}</footer></body></html>"
    )


Answer = tuple[bytes, str]
"""A body and the rest of the head, from the media type on."""

HTML = "text/html; charset=utf-8"


def serve(
    pages: int, latency: float, ready: multiprocessing.connection.Connection, more: Mapping[str, Answer] | None = None
) -> None:
    """A plain HTTP server with everything in memory; its cost is in both measurements. /sitemap.txt lists the pages."""
    bodies: dict[str, Answer] = {f"/p{n}": (page(n, pages).encode(), HTML) for n in range(pages)}
    bodies["/sitemap.txt"] = "\n".join(bodies).encode(), HTML
    bodies.update(more or {})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await reader.readline():
            path = request.split(b" ")[1].decode()
            while (await reader.readline()).strip():
                pass
            body, kind = bodies.get(path, (b"no", HTML))
            status = "200 OK" if path in bodies else "404 No"
            await asyncio.sleep(latency)
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode("latin-1") + body)
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def download(url: str, pages: int, parallel: int) -> float:
    """Pages a second of a loop that only downloads."""
    numbers = iter(range(pages))
    began = time.monotonic()
    async with aiohttp.ClientSession(raise_for_status=True) as client:

        async def work() -> None:
            for number in numbers:
                async with client.get(f"{url}/p{number}") as answer:
                    await answer.read()

        await asyncio.gather(*(work() for _ in range(parallel)))
    return pages / (time.monotonic() - began)


def rss(pid: int | str = "self") -> float:
    """Memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def workers_rss() -> float:
    """Memory of the processes that convert, in MB, with what they share."""
    return sum(rss(child.pid) for child in multiprocessing.active_children() if child.pid and child.name != SERVER)


@dataclass
class Memory:
    """A run's progress that notes the memory every hundredth page."""

    every: int
    seen: list[tuple[float, float]] = field(default_factory=list)
    stages: list[tuple[str, float]] = field(default_factory=list)
    _done: int = 0

    def stage(self, name: str, total: int) -> None:  # noqa: ARG002
        """Notes when it began, and the memory at the start of the pages."""
        self.stages.append((name, time.monotonic()))
        if name == "Pages":
            self.seen.append((rss(), workers_rss()))

    def advance(self, n: int = 1, note: str = "") -> None:  # noqa: ARG002
        """Notes the memory when another tenth is done."""
        self._done += n
        if self._done % self.every == 0:
            self.seen.append((rss(), workers_rss()))

    def close(self) -> None:
        """Nothing."""


def _children() -> float:
    """Seconds of processor time of the workers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def index(url: str, parallel: int, folder: Path, memory: Memory, *, dry: bool) -> float:
    """Pages a second of a run against an empty index."""
    settings = Settings.load(None, crawl_parallel=parallel)
    store = EmbeddedStore(folder)
    began, cpu, children = time.monotonic(), time.process_time(), _children()
    report = await ingest(
        [f"{url}/sitemap.txt"],
        store=store,
        embedder=FreeEmbedder(),
        settings=settings,
        progress=memory,
        options=RunOptions(dry_run=dry),
    )
    seconds = time.monotonic() - began
    memory.stages.append(("end", time.monotonic()))
    await store.close()
    pages = report.counts["new"]
    lasted = [f"{a[0]} {b[1] - a[1]:.1f} s" for a, b in zip(memory.stages, memory.stages[1:], strict=False)]
    print(
        f"  {', '.join(lasted)}; CPU a page: {1000 * (time.process_time() - cpu) / pages:.1f} ms here, "
        f"{1000 * (_children() - children) / pages:.1f} ms in workers"
    )
    print(f"  {report.embedded_texts} texts of chunks, {dict(report.counts)}, {seconds:.1f} s")
    return pages / seconds


def run(url: str, pages: int, parallel: int) -> None:
    """One round: the loop before, between and after the two runs, as the machine may be shared."""
    loops = [asyncio.run(download(url, pages, parallel))]
    for name, dry in (("fetched, converted and split", True), ("whole run", False)):
        memory = Memory(max(pages // 10, 1))
        with tempfile.TemporaryDirectory() as folder:
            made = asyncio.run(index(url, parallel, Path(folder), memory, dry=dry))
        loops.append(asyncio.run(download(url, pages, parallel)))
        plain = (loops[-2] + loops[-1]) / 2
        print(f"{name}: {made:.0f} pages/s, download only {plain:.0f}: ratio {made / plain:.2f}")
        told = " ".join(f"{own:.0f}+{workers:.0f}" for own, workers in memory.seen)
        print(f"  memory in MB (+ workers), each tenth: {told}, at the end {rss():.0f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--latency", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(arguments.pages, arguments.latency / 1000, theirs), daemon=True, name=SERVER
    )
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    for _ in range(arguments.rounds):
        run(url, arguments.pages, arguments.parallel)
    server.terminate()


if __name__ == "__main__":
    main()
