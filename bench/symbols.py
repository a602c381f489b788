"""Questions on parameters over an API reference: `python -m bench.symbols`. The right symbol's section must come first.

The reference is Werkzeug's, built by Sphinx (`sphinx-rtd` of `bench.sites`, 543 symbols); there is no language model.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.api.search_rows import rows_of
from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.turn import Message, Request
from bench.generators import GITHUB, built
from bench.sites import index, serve
from eval.commands.options import NO_MODEL
from tests.ingestion.local_site import local_site

QUESTIONS = {
    "What is the multi parameter of MultiDict.items for?": "datastructures.MultiDict.items",
    "Which type does the default_list parameter of setlistdefault have?": "datastructures.MultiDict.setlistdefault",
    "What does preserve_casing do in HeaderSet.as_set?": "datastructures.HeaderSet.as_set",
    "How do I set the buffer size when saving an uploaded file?": "datastructures.FileStorage.save",
    "What does evalex enable in DebuggedApplication?": "debug.DebuggedApplication",
    "What does allow_token of quote_header_value disable?": "http.quote_header_value",
    "max_age in dump_cookie: seconds or timedelta?": "http.dump_cookie",
    "What can be passed as timestamp to http_date?": "http.http_date",
    "What does is_resource_modified do with the data parameter?": "http.is_resource_modified",
    "Which error message does unbound_message of LocalProxy set?": "local.LocalProxy",
    "What is mounts in DispatcherMiddleware?": "middleware.dispatcher.DispatcherMiddleware",
    "What is chunk_size of ProxyMiddleware?": "middleware.http_proxy.ProxyMiddleware",
    "How can I sort the statistics of ProfilerMiddleware?": "middleware.profiler.ProfilerMiddleware",
    "How many values of X-Forwarded-Proto does ProxyFix trust?": "middleware.proxy_fix.ProxyFix",
    "fixed_digits of IntegerConverter": "routing.IntegerConverter",
    "What does strict_slashes of a routing Map do?": "routing.Map",
    "Which port does run_simple bind when it is given 0?": "serving.run_simple",
    "What is base_path in make_ssl_devcert?": "serving.make_ssl_devcert",
    "What does include_packages do in find_modules?": "utils.find_modules",
    "What does root_only mean for get_current_url?": "wsgi.get_current_url",
}


async def first_sections(folder: Path, starts: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The anchors of the sections that a search finds for each question, best first."""
    await index(starts, folder)
    settings = Settings.load(None, store=str(folder), embedding_model="local:static", **NO_MODEL)
    found: dict[str, list[str]] = {}
    async with opened(settings) as assistants:
        for question in QUESTIONS:
            turn = await assistants.get("").search(Request((Message("user", question),), id="bench"))
            found[question] = [row["url"].partition("#")[2] for row in rows_of(turn)]
    return found


def main() -> int:
    """Print the questions that another section comes first for, and how many there aren't."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", default=GITHUB, help="where git clones from, with {owner} and {name}")
    files = built("sphinx-rtd", parser.parse_args().sources)
    with local_site() as site, tempfile.TemporaryDirectory() as folder:
        serve(site, files)
        found = asyncio.run(first_sections(Path(folder), [f"{site.url}/"]))
    ranks = {question: _rank(anchors, f"werkzeug.{QUESTIONS[question]}") for question, anchors in found.items()}
    for question, rank in ranks.items():
        if rank != 1:
            print(f"{question} {QUESTIONS[question]}: place {rank or '-'}, first is {found[question][:1]}")
    print(f"first: {sum(rank == 1 for rank in ranks.values())} of {len(ranks)}")
    return 0


def _rank(anchors: Sequence[str], wanted: str) -> int:
    return anchors.index(wanted) + 1 if wanted in anchors else 0


if __name__ == "__main__":
    raise SystemExit(main())
