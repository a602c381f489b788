"""`docs-assistant pages`, `generations` and `rollback`: what the index holds, and the way back to its previous state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from app.core import logs
from app.core.errors import RequestError
from app.core.generation import GenerationInfo
from app.core.types import Chunk, Page
from app.index.run_history import as_last_read
from app.text.analysis import fold
from docs_assistant.cli.outline import outline
from docs_assistant.cli.shared import index_option, json_option, json_text, opened_store, settings_of, table_lines

if TYPE_CHECKING:
    from app.index import Generation

NEAREST = 3
BEGINNING = 70


@click.command
@click.option("--search", metavar="TEXT", default="", help="list only pages with this text in their address or title")
@click.option("--url", metavar="URL", default="", help="show one page with its data and chunks")
@click.option("--stale", is_flag=True, help="list only pages that could not be read recently")
@click.option("--full", is_flag=True, help="with --url: show the whole text of the chunks")
@index_option
@json_option
@click.pass_context
async def pages(context: click.Context, /, search: str, url: str, **options: Any) -> int:
    """Lists the indexed pages, or shows one with its chunks."""
    as_json, full, stale = options["as_json"], options["full"], options["stale"]
    if search and url:
        raise click.UsageError("--search is not allowed with --url: it is for the list of pages.", context)
    if stale and url:
        raise RequestError("--stale is for the list of pages: leave out --url.")
    if full and not url:
        raise RequestError("--full shows the text of one page: say which with --url.")
    async with opened_store(settings_of(options["index"])) as store:
        live = await store.live()
        if url:
            (page,) = await as_last_read(store, [await _find(live, url)])
            shown = _page(page, await live.fetch(page.derived.chunk_ids), full=full)
            print(json_text(shown) if as_json else outline(shown).rstrip())
            return 0
        listed = await as_last_read(store, await live.pages())
    text = fold(search)
    listed = tuple(
        page for page in listed if text in fold(f"{page.url}\n{page.title}") and (page.fetch.stale_since or not stale)
    )
    print(json_text([_summary(page) for page in listed]) if as_json else _list_text(live.info, listed))
    return 0


async def _find(live: Generation, url: str) -> Page:
    """The page with this address; a fragment is ignored."""
    page = await live.page(url) or await live.page(url.partition("#")[0])
    if page is None:
        near = "".join(f"\n  {other}" for other in nearest(url, [page.url for page in await live.pages()]))
        raise RequestError(f"{url} is not indexed." + (f" The nearest are:{near}" if near else " No page is."))
    return page


def nearest(url: str, urls: Sequence[str]) -> list[str]:
    """The addresses most similar to this one, most similar first; those that have it as a part come first."""
    whole = [other for other in urls if fold(url) in fold(other)]
    return list(dict.fromkeys([*whole, *get_close_matches(url, urls, NEAREST, 0.0)]))[:NEAREST]


def _summary(page: Page) -> dict[str, Any]:
    names = ("url", "title", "language", "collection", "modified", "last_ok", "stale_since")
    return {**{name: page.facts[name] for name in names}, "chunks": len(page.derived.chunk_ids)}


def _list_text(info: GenerationInfo, listed: Sequence[Page]) -> str:
    headings = ("language", "chunks", "modified", "last ok", "stale since", "collection", "url", "title")
    times = ((page.modified[:10], _minute(page.fetch.last_ok), _minute(page.fetch.stale_since)) for page in listed)
    rows = [
        (page.language, len(page.derived.chunk_ids), *dates, page.collection, page.url, page.title)
        for page, dates in zip(listed, times, strict=True)
    ]
    table = [*table_lines(headings, rows), ""] if rows else []
    stale = sum(1 for page in listed if page.fetch.stale_since)
    total = f"{len(listed)} of {info.pages} pages, {sum(len(page.derived.chunk_ids) for page in listed)} of {info.chunks} chunks"
    more = f", {stale} stale" if stale else ""
    return "\n".join([*table, f"{total}{more} (generation {info.id}, built {info.built_at})"])


def _page(page: Page, chunks: Sequence[Chunk], *, full: bool) -> dict[str, Any]:
    record = page.facts
    if not full:
        del record["markdown"]
    described = [
        {
            "id": chunk.id,
            "link": chunk.link,
            "language": chunk.language,
            "sections": [asdict(section) for section in chunk.sections],
            "characters": len(chunk.text),
            **({"text": chunk.text} if full else {"begins": _begin(chunk.text)}),
        }
        for chunk in chunks
    ]
    # redundant: the chunks have their ids, and counterparts are numbers of chunks
    del record["chunk_ids"], record["counterparts"]
    return {**record, "chunks": described}


def _begin(text: str) -> str:
    """The first words on one line."""
    line = " ".join(text.split())
    return line if len(line) <= BEGINNING else f"{line[:BEGINNING].rsplit(' ', 1)[0]} …"


def _minute(time: str) -> str:
    """An ISO 8601 time to the minute."""
    return time[:16].replace("T", " ")


@click.command
@index_option
@json_option
async def generations(index: str, as_json: bool) -> int:
    """Lists the kept generations of the index, newest first."""
    async with opened_store(settings_of(index)) as store:
        live, infos = (await store.live()).info.id, await store.generations()
    if as_json:
        print(json_text([{"live": info.id == live, **asdict(info)} for info in infos]))
        return 0
    headings = ("generation", "state", "built", "pages", "chunks", "languages", "embedder", "splitter", "analyzer")
    print(*table_lines(headings, [_row(info, live=info.id == live) for info in infos]), sep="\n")
    return 0


def _row(info: GenerationInfo, *, live: bool) -> tuple[object, ...]:
    recipe = info.recipe
    state = info.id, "live" if live else "kept", info.built_at, info.pages, info.chunks, " ".join(info.languages)
    return *state, f"{recipe.embedder} ({recipe.dimension})", recipe.splitter, recipe.analyzer


@click.command
@index_option
async def rollback(index: str) -> int:
    """Makes the previous generation live again, in one step, and drops the one that was live.

    A running service uses it at once. The next run of ingest starts from it.
    """
    from app.assistants.health import roll_back
    from app.models import open_embedder

    settings = settings_of(index)
    logs.configure(settings)
    embedder = open_embedder(settings)
    try:
        async with opened_store(settings) as store:
            info = await roll_back(store, embedder)
    finally:
        await embedder.close()
    print(
        f"Generation {info.id} is live again: {info.pages} pages, {info.chunks} chunks ({', '.join(info.languages)}), "
        f"built {info.built_at} with {info.recipe.embedder}."
    )
    if info.sources:
        print(f"Its sites: {', '.join(source.url for source in info.sources)}")
    return 0
