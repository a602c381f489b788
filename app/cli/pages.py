"""`docs-assistant pages`: lists the indexed pages, or shows one page with its chunks."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from app.cli.options import Commands, add_index_option, opened_store, settings_of
from app.cli.output import table_lines
from app.core.errors import RequestError
from app.core.generation import GenerationInfo
from app.core.settings import Settings
from app.core.types import Chunk, Page
from app.index.run_history import as_last_read
from app.text.analysis import fold

if TYPE_CHECKING:
    from app.index import Generation

NEAREST = 3
BEGINNING = 70


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "pages", help="show the indexed pages", description="Lists the indexed pages, or shows one with its chunks."
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--search", metavar="TEXT", default="", help="list only pages with this text in their address or title"
    )
    chosen.add_argument("--url", metavar="URL", default="", help="show one page with its data and chunks")
    parser.add_argument("--stale", action="store_true", help="list only pages that could not be read recently")
    parser.add_argument("--full", action="store_true", help="with --url: show the whole text of the chunks")
    add_index_option(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(handler=pages)


def pages(arguments: argparse.Namespace) -> int:
    """Print the list or the page. Raises `RequestError` with similar addresses if the page isn't indexed."""
    if arguments.stale and arguments.url:
        raise RequestError("--stale is for the list of pages: leave out --url.")
    if arguments.full and not arguments.url:
        raise RequestError("--full shows the text of one page: say which with --url.")
    settings = settings_of(arguments)
    if arguments.url:
        shown = asyncio.run(_one(settings, arguments.url))
        print(_page_json(shown, full=arguments.full) if arguments.json else _page_text(shown, full=arguments.full))
        return 0
    info, listed = asyncio.run(_all(settings))
    found = [page for page in listed if _contains(page, arguments.search) and (page.stale_since or not arguments.stale)]
    print(_dump([_summary(page) for page in found]) if arguments.json else _list_text(info, found))
    return 0


@dataclass(frozen=True, slots=True)
class _Shown:
    page: Page
    chunks: tuple[Chunk, ...]


async def _all(settings: Settings) -> tuple[GenerationInfo, tuple[Page, ...]]:
    async with opened_store(settings) as store:
        live = await store.live()
        return live.info, await as_last_read(store, await live.pages())


async def _one(settings: Settings, url: str) -> _Shown:
    async with opened_store(settings) as store:
        live = await store.live()
        (page,) = await as_last_read(store, [await _find(live, url)])
        return _Shown(page, await live.fetch(page.chunk_ids))


async def _find(live: Generation, url: str) -> Page:
    """The page with this address; a fragment is ignored."""
    page = await live.page(url) or await live.page(url.partition("#")[0])
    if page is None:
        near = "".join(f"\n  {other}" for other in nearest(url, [page.url for page in await live.pages()]))
        raise RequestError(f"{url} is not indexed." + (f" The nearest are:{near}" if near else " No page is."))
    return page


def nearest(url: str, urls: Sequence[str]) -> list[str]:
    """The addresses most similar to this one, most similar first."""
    wanted = fold(url).rstrip("/")
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)

    def similarity(other: str) -> tuple[bool, float]:
        matcher.set_seq1(fold(other).rstrip("/"))
        return wanted in fold(other), matcher.ratio()

    return sorted(urls, key=similarity, reverse=True)[:NEAREST]


def _contains(page: Page, text: str) -> bool:
    return fold(text) in fold(f"{page.url}\n{page.title}")


def _summary(page: Page) -> dict[str, Any]:
    return {
        "url": page.url,
        "title": page.title,
        "language": page.language,
        "collection": page.collection,
        "chunks": len(page.chunk_ids),
        "modified": page.modified,
        "last_ok": page.last_ok,
        "stale_since": page.stale_since,
    }


def _list_text(info: GenerationInfo, found: Sequence[Page]) -> str:
    headings = ("language", "chunks", "modified", "last ok", "stale since", "collection", "url", "title")
    rows = [
        (
            page.language,
            len(page.chunk_ids),
            page.modified[:10],
            _minute(page.last_ok),
            _minute(page.stale_since),
            page.collection,
            page.url,
            page.title,
        )
        for page in found
    ]
    table = [*table_lines(headings, rows), ""] if rows else []
    stale = sum(1 for page in found if page.stale_since)
    total = f"{len(found)} of {info.pages} pages, {sum(len(page.chunk_ids) for page in found)} of {info.chunks} chunks"
    more = f", {stale} stale" if stale else ""
    return "\n".join([*table, f"{total}{more} (generation {info.id}, built {info.built_at})"])


def _page_text(shown: _Shown, *, full: bool) -> str:
    record = asdict(shown.page)
    known = {name.replace("_", " "): value for name, value in record.items() if name not in _NOT_SHOWN}
    known["alternates"] = ", ".join(f"{code} {url}" for code, url in shown.page.alternates.items())
    known["chunks"] = f"{len(shown.chunks)}, {sum(len(chunk.text) for chunk in shown.chunks)} characters"
    lines = [f"{name:<14}  {value}" for name, value in known.items() if value]
    for number, chunk in enumerate(shown.chunks, 1):
        anchors = " ".join(f"#{section.anchor}" for section in chunk.sections if section.anchor)
        path = " > ".join(chunk.heading_path) or chunk.title
        lines += ["", f"{number}. {path}  [{len(chunk.text)} characters{f', {anchors}' if anchors else ''}]"]
        lines.append(chunk.text if full else f"   {_begin(chunk.text)}")
    return "\n".join(lines)


_NOT_SHOWN = {"markdown", "chunk_ids", "summary_of", "questions_of"}


def _page_json(shown: _Shown, *, full: bool) -> str:
    record = asdict(shown.page)
    if not full:
        del record["markdown"]
    chunks = [
        {
            "id": chunk.id,
            "link": chunk.link,
            "language": chunk.language,
            "sections": [asdict(section) for section in chunk.sections],
            "characters": len(chunk.text),
            **({"text": chunk.text} if full else {"begins": _begin(chunk.text)}),
        }
        for chunk in shown.chunks
    ]
    del record["chunk_ids"]  # redundant: the chunks have their ids
    return _dump({**record, "chunks": chunks})


def _begin(text: str) -> str:
    """The first words on one line."""
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING else f"{line[:BEGINNING].rsplit(' ', 1)[0]} …"


def _minute(time: str) -> str:
    """An ISO 8601 time to the minute."""
    return time[:16].replace("T", " ")


def _dump(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2)
