"""Sources whose pages all ask not to be indexed, as internal sites often do: an operator may want them all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from app.core.masking import masked
from ingestion.crawl.advice import IGNORE
from ingestion.entry import Entry
from ingestion.errors import NOINDEX
from ingestion.report import PageReport
from ingestion.sources import Source


def noindex_sources(entries: Sequence[Entry], pages: Iterable[PageReport]) -> list[str]:
    """A message for each source of which no page was read, because most of them say `noindex`."""
    source_of = {url: entry.site for entry in entries for url in (entry.url, entry.address)}
    listed = Counter(entry.site for entry in entries)
    said: Counter[Source] = Counter()
    for page in pages:
        if (source := source_of.get(page.url)) is None:
            continue
        if page.read:
            del listed[source]
        elif page.reason == NOINDEX:
            said[source] += 1
    return [
        f"{masked(source.place)}: {said[source]} of its {count} pages say noindex, and none was read: {IGNORE}"
        for source, count in listed.items()
        if 2 * said[source] > count
    ]
