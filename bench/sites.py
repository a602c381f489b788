"""Sites of real generators, indexed with default settings, in one table: `python -m bench.sites [SITE ...] [--show]`.

Twelve sites are built from the documentation of real projects (see `bench.generators`), served on loopback as their hosts do, and
indexed with static vectors into a temporary directory. The table says how true the index is to the pages (see `bench.fidelity`).
"""

from __future__ import annotations

import argparse
import asyncio
import mimetypes
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

from app.core.settings import Settings
from app.core.types import Chunk
from app.index import open_store
from app.models import open_embedder
from bench.fidelity import Fidelity
from bench.generators import GITHUB, SITE, SITES, BuiltSite, built
from ingestion.report import PageReport, Report
from ingestion.run import ingest
from tests.ingestion.local_site import LocalSite, local_site

COLUMNS = (
    "site", "files", "indexed", "chunks", "language right", "code verbatim", "anchors", "cuts in units", "units not found",
    "boilerplate", "copies", "angles lost", "tab labels", "dead references", "s",
)  # fmt: skip
EXAMPLES = 12
_TEXT = frozenset({".html", ".xml", ".txt", ".md", ".json"})


def serve(site: LocalSite, files: Path) -> int:
    """Serve the files with the address of the site; how many pages they are."""
    pages = 0
    for file in sorted(path for path in files.rglob("*") if path.is_file() and path.suffix in _TEXT):
        path = "/" + quote(file.relative_to(files).as_posix())
        body = file.read_bytes().replace(SITE.encode(), site.url.encode())
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        pages += kind == "text/html"
        site.put(path, body, f"{kind}; charset=utf-8")
        if path.endswith("/index.html"):
            folder = path.removesuffix("index.html")
            site.put(folder, body, f"{kind}; charset=utf-8")
            if folder != "/":
                site.put(folder.rstrip("/"), "", status=301, headers={"Location": folder})
        elif path.endswith(".html"):
            site.answers.setdefault(path.removesuffix(".html"), site.answers[path])
    return pages


async def index(starts: Sequence[str], folder: Path) -> tuple[Report, Mapping[str, Sequence[Chunk]]]:
    """The report of a run over the whole site, and the chunks of its pages."""
    settings = Settings.load(None, store=str(folder), embedding_model="local:static")
    store, embedder = open_store(settings), open_embedder(settings)
    try:
        report = await ingest(starts, store=store, embedder=embedder, settings=settings)
        live = await store.live()
        return report, await live.chunks_of([page.url for page in await live.pages()])
    finally:
        await store.close()
        await embedder.close()


def measured(name: str, sources: str, *, show: bool) -> list[str]:
    """The row of a site."""
    began, of = time.monotonic(), SITES[name]
    with local_site() as site, tempfile.TemporaryDirectory() as folder:
        files = serve(site, built(name, sources))
        report, pages = asyncio.run(index([site.url + start for start in of.starts], Path(folder)))
        found = compared(site, of, pages)
        languages = _languages(report.pages, of)
    if show:
        _show(name, report, found)
    code, anchors, tabs = (f"{found.right[name]}/{found.all[name]}" for name in ("code", "anchors", "tabs"))
    wrong = [str(found.missed(name)) for name in ("cuts", "units not found", "boilerplate", "copies", "angles")]
    seconds = f"{time.monotonic() - began:.0f}"
    counts = [str(files), str(len(pages)), str(sum(map(len, pages.values()))), languages, code, anchors]
    return [of.version, *counts, *wrong, tabs, str(found.missed("references")), seconds]


def compared(site: LocalSite, of: BuiltSite, pages: Mapping[str, Sequence[Chunk]]) -> Fidelity:
    """How true the chunks are to the pages that the site serves."""
    found = Fidelity()
    for url, chunks in pages.items():
        answer = site.answers.get(urlsplit(url).path)
        if answer is not None and not callable(answer):
            found.page(url, answer.body.decode(), of.main, chunks)
    found.site(pages)
    return found


def _languages(pages: Sequence[PageReport], of: BuiltSite) -> str:
    told = [(page.language, of.language(urlsplit(page.url).path)) for page in pages if page.language]
    return f"{sum(one == true.partition('-')[0] for one, true in told)}/{len(told)}"


def _show(name: str, report: Report, found: Fidelity) -> None:
    print(f"\n== {name}\n{report.text}")
    reasons = Counter(f"{page.outcome}: {page.reason.partition('http')[0]}" for page in report.pages if page.reason)
    print("\n".join(f"  {count} {reason}" for reason, count in reasons.most_common()))
    for measure, wrong in found.wrong.items():
        print(f"-- {measure}: {len(wrong)}")
        for url, what in wrong[:EXAMPLES]:
            print(f"   {urlsplit(url).path}: {what}")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sites", nargs="*", choices=[*SITES, []], metavar="SITE", help=", ".join(SITES))
    parser.add_argument("--sources", default=GITHUB, help="where git clones from, with {owner} and {name}")
    parser.add_argument("--show", action="store_true", help="what was wrong, with examples")
    options = parser.parse_args()
    rows = [measured(name, options.sources, show=options.show) for name in options.sites or SITES]
    for row in (COLUMNS, ["---"] * len(COLUMNS), *rows):
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
